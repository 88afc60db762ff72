package integration_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// trusting is a lock client with a mistake that this project avoids: it believes that it
// holds its lock while its client library reports a session. The partition and chaos tests
// run it as a control. If the faults did not deceive it, these tests would prove nothing.
type trusting struct {
	conn    *zk.Conn
	path    string
	expired atomic.Bool
	left    atomic.Int64 // when the client library last reported the end of a connection (monotonic)
}

// newTrusting returns a trusting client, which connects in the background. hosts has one
// address or several.
func newTrusting(hosts []string, timeout time.Duration, path string) (*trusting, error) {
	c := &trusting{path: path}
	conn, _, err := zk.Connect(hosts, timeout, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithEventCallback(func(e zk.Event) {
			switch e.State {
			case zk.StateDisconnected:
				c.left.Store(monotonic())
			case zk.StateExpired:
				c.expired.Store(true)
			}
		}))
	c.conn = conn
	return c, err
}

// dialTrusting returns a trusting client with an open session. It is closed at the end of the
// test.
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

// believes reports whether the client believes that it holds the lock. It is valid after take
// has succeeded.
func (c *trusting) believes() bool { return !c.expired.Load() && c.conn.State() == zk.StateHasSession }

// take creates the node that is the lock. It returns zk.ErrNodeExists if the node of another
// session exists.
func (c *trusting) take() error {
	c.expired.Store(false) // an earlier session may have expired
	_, err := c.conn.Create(c.path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	if there, st, e := c.conn.Exists(c.path); e == nil && there && st.EphemeralOwner == c.conn.SessionID() {
		return nil // created in spite of an error, or held since before the connection was cut
	}
	return err
}

// wait takes the lock when its holder's session is over, and sends the result.
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
					<-event // also arrives when the client is closed
				}
			}
			<-pause.C
		}
	}()
	return taken
}
