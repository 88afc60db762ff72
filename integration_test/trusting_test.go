package integration_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// trusting is the lock client that this project is not: it holds a lock while
// its connection is up, as its client library tells. Tests of partitions run it
// beside ours: if it did not fail, the partition would prove nothing.
type trusting struct {
	conn    *zk.Conn
	path    string
	expired atomic.Bool
}

// dialTrusting opens its session; hosts is one address or several.
func dialTrusting(t testing.TB, hosts []string, timeout time.Duration, path string) *trusting {
	t.Helper()
	c := &trusting{path: path}
	conn, _, err := zk.Connect(hosts, timeout, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateExpired {
				c.expired.Store(true)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	c.conn = conn
	eventually(t, "the trusting client has a session", func() bool { return conn.State() == zk.StateHasSession })
	return c
}

// believes reports whether it takes itself for the holder.
func (c *trusting) believes() bool { return !c.expired.Load() && c.conn.State() == zk.StateHasSession }

// take makes the node that is the lock, if it is not there.
func (c *trusting) take() error {
	_, err := c.conn.Create(c.path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
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
