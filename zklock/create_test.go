package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The server removes a container that has been empty for a while, and an
// operator anything.
func TestParentRemovedByTheServerIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		both := zklock.All(c.Mutex("x"), c.Mutex("y"))
		for _, a := range []zklock.Acquirer{c.Mutex("x"), both, c.Semaphore("x", 2)} {
			for range 2 {
				mustRelease(t, mustLock(t)(a.Acquire(t.Context())))
				if err := e.Delete("/zklock/x"); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A create that was applied is found again, by a list that a Sync has
// brought up to date. Nothing is created twice.
func TestLostCreateIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply())))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		var l *zklock.Lock
		began := time.Now()
		d := cost(e, func() { l = mustLock(t)(c.Mutex("x").Acquire(t.Context())) })
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("it took %v: the first heartbeat leaves the whole lease", took)
		}
		if d.MultiOps-d.Multis != 1 || d.Syncs != 1 { // heartbeats have one operation
			t.Errorf("%+v, want one transaction of two operations, and one Sync to find it", d)
		}
		if !strings.Contains(e.Dump(), "__WRIT__0000000000") || nodes(e) != 1 {
			t.Errorf("queue:\n%s", e.Dump())
		}
		mustRelease(t, l)
	})
}

// Of two nodes that one request came to, the first counts: its place in the
// queue is not given away.
func TestOfTwinsTheFirstCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		faults := about(faultdriver.On(faultdriver.Multi, faultdriver.Script(faultdriver.Late(gate), faultdriver.LoseReply())))
		looked := 0
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "recover" {
				if looked++; looked == 2 && gate.Release() != 1 {
					t.Error("nothing was late")
				}
			}
			return ctx, nil
		}}
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil, zklock.WithHooks(hooks))
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		synctest.Wait()
		if looked < 2 || nodes(e) != 1 || !strings.Contains(e.Dump(), "__WRIT__0000000000") {
			t.Errorf("looked %d times, queue:\n%s", looked, e.Dump())
		}
		mustRelease(t, l)
	})
}

// A list meets a node of its own session whose create is still being answered:
// that one is somebody's.
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
			t.Errorf("a try beside it: %v", err)
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

// A write goes out on the session's context. A caller that was cancelled is the
// usual reason for one, and must not keep it back.
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
			t.Errorf("a release on a context that is over cost %+v, want one transaction", d)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}
