package integration_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// trusting is the lock client that this project is not: it holds a lock while
// its connection is up, as its client library tells. Tests of partitions and of
// chaos run it beside ours: if it did not fail, they would prove nothing.
type trusting struct {
	conn    *zk.Conn
	path    string
	expired atomic.Bool
}

// newTrusting makes one, which connects in the background; hosts is one address
// or several.
func newTrusting(hosts []string, timeout time.Duration, path string) (*trusting, error) {
	c := &trusting{path: path}
	conn, _, err := zk.Connect(hosts, timeout, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateExpired {
				c.expired.Store(true)
			}
		}))
	c.conn = conn
	return c, err
}

// dialTrusting opens the session of one that ends with the test.
func dialTrusting(t testing.TB, hosts []string, timeout time.Duration, path string) *trusting {
	t.Helper()
	c, err := newTrusting(hosts, timeout, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
	eventually(t, "the trusting client has a session", func() bool { return c.conn.State() == zk.StateHasSession })
	return c
}

// believes reports whether it takes itself for the holder, once it has taken the
// lock.
func (c *trusting) believes() bool { return !c.expired.Load() && c.conn.State() == zk.StateHasSession }

// take makes the node that is the lock, unless another session's is there.
func (c *trusting) take() error {
	c.expired.Store(false) // of a session before
	_, err := c.conn.Create(c.path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	if there, st, e := c.conn.Exists(c.path); e == nil && there && st.EphemeralOwner == c.conn.SessionID() {
		return nil // it was made in spite of an error, or held before the connection was cut
	}
	return err
}

// wait takes the lock when its holder's session is over, and sends how.
func (c *trusting) wait() <-chan error {
	taken := make(chan error, 1)
	go func() {
		pause := time.NewTicker(20 * time.Millisecond)
		defer pause.Stop()
		giveUp := time.Now().Add(patience)
		for {
			err := c.take()
			if err == nil || time.Now().After(giveUp) {
				taken <- err
				return
			}
			if errors.Is(err, zk.ErrNodeExists) {
				there, _, event, err := c.conn.ExistsW(c.path)
				if err == nil && there {
					<-event // comes when the client is closed, too
				}
			}
			<-pause.C
		}
	}()
	return taken
}
