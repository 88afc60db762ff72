package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The server removes a container znode that has been empty for a while, and an operator
// may remove any znode. The next request creates it again.
func TestParentRemovedByTheServerIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		both := zklock.All(c.Mutex("x"), c.Mutex("y"))
		for _, a := range []zklock.Acquirer{c.Mutex("x"), both, c.Semaphore("x", 2)} {
			for range 2 {
				mustRelease(t, mustLock(t)(a.Acquire(t.Context())))
				if err := memcontrol.Of(e).Delete("/zklock/x"); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// If only the reply to a create is lost, the client finds the node by listing the queue
// after a Sync, which brings the list up to date. It creates nothing twice.
func TestLostCreateIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply())))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		var l *zklock.Lock
		began := time.Now()
		d := cost(e, func() { l = mustLock(t)(c.Mutex("x").Acquire(t.Context())) })
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("acquiring took %v, want at most 500ms: the first heartbeat renews the whole lease", took)
		}
		if d.MultiOps-d.Multis != 2 || d.Syncs != 1 { // heartbeats have one operation
			t.Errorf("the requests were %+v, want one transaction of three operations, and one Sync to find its node", d)
		}
		if !strings.Contains(e.Dump(), "__WRIT__0000000000") || nodes(e) != 1 {
			t.Errorf("want one node, the first of its queue:\n%s", e.Dump())
		}
		mustRelease(t, l)
	})
}

// If two nodes were created for one request, the first one counts, so that the request
// keeps its position in the queue.
func TestOfTwinsTheFirstCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		known := false // a fresh name's znode would be created with the node, and not for a second time
		faults := faultdriver.If("about a known name", func(faultdriver.Op) bool { return known },
			about(faultdriver.On(faultdriver.Multi, faultdriver.Script(faultdriver.Late(gate), faultdriver.LoseReply()))))
		looked := 0
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "recover" {
				if looked++; looked == 2 && gate.Release() != 1 {
					t.Error("the gate held no request back")
				}
			}
			return ctx, nil
		}}
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil, zklock.WithHooks(hooks))
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		known = true
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		synctest.Wait()
		if looked < 2 || nodes(e) != 1 || !strings.Contains(e.Dump(), "__WRIT__0000000001") {
			t.Errorf("looked for the node %d times; want 2 or more, and only the first of the two nodes in the queue:\n%s", looked, e.Dump())
		}
		mustRelease(t, l)
	})
}

// A list of the queue shows a node of the client's own session whose create has not been
// answered yet. The node belongs to a request that is under way, so it is not removed.
func TestOpenCreateIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(time.Second))))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		got := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithoutHandover())
		if n := nodes(e); n != 1 {
			t.Fatalf("%d nodes", n)
		}
		if _, err := c.Mutex("x").TryAcquire(t.Context(), zklock.WithoutHandover()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a try while the create is under way: %v", err)
		}
		l := <-got
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("Verify: %v", err)
		}
		mustRelease(t, l)
	})
}

// A caller that gives up while its create is under way leaves nothing behind.
func TestCreateCancelledUnderWayLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(time.Second))))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		began := time.Now()
		_, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(100*time.Millisecond))
		if !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(2 * time.Second)
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// Writes are sent on the session's context and not on the caller's. A cancelled caller is
// a usual reason for a write, so its context must not stop the write.
func TestWritesOutliveTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := cost(e, func() {
			if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("Release: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		})
		if d.Multis != 1 || d.MultiOps != 1 {
			t.Errorf("a release with a context that has ended cost %+v, want one transaction", d)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// Another program changes a name between two acquisitions of a client. The second acquisition
// still waits for a contender that is ahead, and gets the lock when that is gone.
func TestKnownNameWaitsForOthers(t *testing.T) {
	const path = "/zklock/a"
	acl := driver.OpenACL(driver.PermAll)
	type world struct {
		*testing.T
		e         *memdriver.Ensemble
		client    int64 // its session
		s         driver.Session
		contender string // of the other program, which is still there
	}
	enter := func(w *world) {
		var err error
		if w.contender, err = w.s.Create(w.Context(), path+"/_c_00000000000000000000000000000001-__WRIT__", nil, driver.EphemeralSequential, acl); err != nil {
			w.Fatal(err)
		}
	}
	remake := func(w *world) {
		err := w.s.Delete(w.Context(), path, driver.AnyVersion)
		if err == nil {
			_, err = w.s.Create(w.Context(), path, []byte("zklock"), driver.Container, acl)
		}
		if err != nil {
			w.Fatal(err)
		}
		enter(w)
	}
	for what, do := range map[string]func(w *world){
		"a contender came": enter,
		"two contenders came, and the first has left": func(w *world) {
			enter(w)
			first := w.contender
			enter(w)
			if err := w.s.Delete(w.Context(), first, driver.AnyVersion); err != nil {
				w.Fatal(err)
			}
		},
		"the znode was made again": remake,
		"the znode was made again while the client had no connection": func(w *world) {
			cut := memdriver.AroundSession(w.client).Reset()
			w.e.Partition(cut)
			synctest.Wait()
			remake(w)
			w.e.Heal(cut)
		},
		"a contender came, and the connection is lost while the client asks": func(w *world) {
			enter(w)
			release := memcontrol.Of(w.e).HoldRequests(w.client)
			time.AfterFunc(300*time.Millisecond, func() { w.e.KillConnection(w.client); release() })
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
				memcontrol.Of(e).Lag(1, 20*time.Millisecond)
				c := connect(t, e.Connector(), nil)
				for range 4 {
					mustRelease(t, mustLock(t)(c.Mutex("a").Acquire(t.Context())))
				}
				w := &world{T: t, e: e, client: e.Sessions()[0], s: plain(t, e)}
				do(w)
				got := acquiring(t, c.Mutex("a"), t.Context())
				time.Sleep(2 * time.Second)
				none(t, "a contender of a name in use", got)
				if err := w.s.Delete(t.Context(), w.contender, driver.AnyVersion); err != nil {
					t.Fatal(err)
				}
				mustRelease(t, soon(t, "the contender", got))
			})
		})
	}
}
