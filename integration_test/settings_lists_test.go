package integration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// crowdOut gives a znode children with names of that length, until the list of them has more
// bytes than size.
func crowdOut(t *testing.T, conn *zk.Conn, path string, length, size int) (children []string) {
	t.Helper()
	for i := 0; i*length <= size; i++ {
		child := fmt.Sprintf("%s/%05d%s", path, i, strings.Repeat("x", length-5))
		if _, err := conn.Create(child, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatalf("child %d of %s: %v", i, path, err)
		}
		children = append(children, child)
	}
	return children
}

// TestListOfAQueueThatDoesNotFit: servers send lists of any length, also above their
// jute.maxbuffer. A list that is longer than a request may be is read. For one that is longer
// than the driver reads, every call that needs it fails at once, and says so. It leaves nothing
// in the queue, and the session goes on: other locks do not notice.
func TestListOfAQueueThatDoesNotFit(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "a list has 64 MiB")
	ensemble.Require(t)
	// A server needs memory for a list several times over, and on a busy machine seconds.
	e := ensemble.Start(t, ensemble.Config{TickTime: 2 * time.Second, JavaOptions: []string{"-Xmx1g"}})
	conn := dialRaw(t, e.Hosts(), patience)
	params := keys("session_timeout", "40s", "tick_time", "2s", "pool_max_sessions", "1", "connect_timeout", patience.String())
	c := dial(t, e.Hosts(), params)
	other := acquire(t, c.Mutex("other"))
	held := acquire(t, c.Mutex("x"))
	m := c.Mutex("x")

	children := crowdOut(t, conn, m.Path(), 100_000, 3<<20)
	if q, err := c.Contenders(within(t), "x"); err != nil || len(q) != 1 {
		t.Errorf("with a list of 3 MiB: %d contenders, %v, want the holder", len(q), err)
	}
	if _, err := c.Mutex("x").TryAcquire(within(t), zklock.WithoutHandover()); !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("TryAcquire with a list of 3 MiB: %v, want ErrNotAcquired", err)
	}

	stranger := dial(t, e.Hosts(), params)
	children = append(children, crowdOut(t, conn, m.Path(), 1_000_000, 64<<20)...)
	for verb, call := range map[string]func() error{
		"Acquire":    func() error { _, err := stranger.Mutex("x").Acquire(within(t)); return err },
		"TryAcquire": func() error { _, err := stranger.Mutex("x").TryAcquire(within(t)); return err },
		"Contenders": func() error { _, err := stranger.Contenders(within(t), "x"); return err },
		"Watch": func() (err error) {
			for _, err = range stranger.Watch(within(t), "x") {
				break
			}
			return err
		},
		"Locks": func() (err error) {
			names := ""
			for info, problem := range stranger.Locks(within(t), "") {
				if names += info.Name + " "; problem != nil {
					err = problem
				}
			}
			if names != "other x " {
				t.Errorf("Locks returned the names %q, want other and x", names)
			}
			return err
		},
	} {
		began := time.Now()
		err := call()
		if !errors.Is(err, driver.ErrReplyTooLarge) {
			t.Errorf("%s: %v, want ErrReplyTooLarge", verb, err)
			continue
		}
		saysAll(t, err, []string{m.Path(), "remove some"})
		t.Logf("%s, after %v: %v", verb, time.Since(began).Round(time.Millisecond), err)
	}
	if st := stranger.Stats(); st.SessionsOpened != 1 || st.Reconnects != 0 {
		t.Errorf("%d sessions and %d reconnects, want 1 and 0", st.SessionsOpened, st.Reconnects)
	}
	for _, l := range []*zklock.Lock{held, other} {
		if err := l.Verify(within(t)); err != nil {
			t.Errorf("a lock that was held: %v", err)
		}
	}
	for _, child := range children {
		if err := conn.Delete(child, -1); err != nil {
			t.Fatal(err)
		}
	}
	if q, err := stranger.Contenders(within(t), "x"); err != nil || len(q) != 1 {
		t.Errorf("with a short list: %d contenders, %v, want the holder", len(q), err)
	}
	release(t, held)
	release(t, acquire(t, stranger.Mutex("x")))
	release(t, other)
}
