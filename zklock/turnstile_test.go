package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A waiter's session expires. The waiter queues again, at the tail.
func TestExpiryWhileQueuedGoesToTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		known := e.Sessions()
		second := acquiring(t, b.Mutex("x"), t.Context())
		ids := e.Sessions()
		third := acquiring(t, c.Mutex("x"), t.Context())
		for _, id := range ids {
			if id != known[0] {
				e.Expire(id)
			}
		}
		time.Sleep(5 * time.Second)
		none(t, "the second", second)
		none(t, "the third", third)
		if n := nodes(e); n != 3 {
			t.Errorf("%d nodes, want 3:\n%s", n, e.Dump())
		}
		mustRelease(t, l)
		l = <-third
		none(t, "the second, while the third holds,", second)
		mustRelease(t, l)
		mustRelease(t, <-second)
	})
}

// An operator deletes a waiter's node. The waiter queues again.
func TestBrokenWaitersQueueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithLabel("first")))
		second := acquiring(t, b.Mutex("x"), t.Context(), zklock.WithLabel("second"))
		third := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithLabel("third"))
		queue, err := a.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 3 || !queue[0].Held || queue[1].Held || queue[2].Held || queue[1].Label != "second" || queue[2].Foreign {
			t.Fatalf("contenders: %+v, %v", queue, err)
		}
		if err := a.Break(t.Context(), "x", queue[1].Node); err != nil {
			t.Fatal(err)
		}
		if err := a.Break(t.Context(), "x", queue[1].Node); !errors.Is(err, driver.ErrNoNode) {
			t.Errorf("a second Break of the same node: %v, want ErrNoNode", err)
		}
		none(t, "the second", second)
		none(t, "the third", third)
		mustRelease(t, l)
		var first, last chan *zklock.Lock
		synctest.Wait()
		if len(second) == 1 {
			first, last = second, third
		} else {
			first, last = third, second
		}
		l = <-first
		none(t, "the other", last)
		mustRelease(t, l)
		mustRelease(t, <-last)
	})
}

func TestSequenceEndIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		for _, next := range []int32{1<<31 - 1<<20, 1<<31 - 1} {
			if err := memcontrol.Of(e).SetSequence("/zklock/x", next); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
				t.Errorf("Acquire with sequence number %d: %v, want ErrConflict", next, err)
			}
			synctest.Wait()
			if nodes(e) != 0 {
				t.Errorf("left behind:\n%s", e.Dump())
			}
		}
		if err := memcontrol.Of(e).SetSequence("/zklock/x", 1<<31-1<<20-1); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
	})
}

func TestMiddleWaiterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { _, err := b.Mutex("x").Acquire(ctx); failed <- err }()
		synctest.Wait()
		third := acquiring(t, c.Mutex("x"), t.Context())
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, zklock.ErrNotAcquired) {
			t.Error(err)
		}
		none(t, "the third", third)
		if n := nodes(e); n != 2 {
			t.Errorf("%d nodes, want 2", n)
		}
		mustRelease(t, l)
		mustRelease(t, <-third)
	})
}

func TestReleaseOfADeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		e.Break("/zklock/x")
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("second Release: %v", err)
		}
		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		e.Break("/zklock/x")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if err := l.Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("the loss is not known 3s after the grant, when the lock's node is watched: %v", err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		e.Break("/zklock/x")
		if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		if l.Valid() {
			t.Error("the lock is valid after Verify has returned that it is lost")
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
	})
}

func TestReleaseGoesOnInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := about(faultdriver.First(5, faultdriver.After(1, faultdriver.Any(faultdriver.On(faultdriver.Multi, faultdriver.Drop()), faultdriver.On(faultdriver.Delete, faultdriver.Drop())))))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) || !errors.Is(err, context.Canceled) {
			t.Errorf("Release: %v", err)
		}
		time.Sleep(5 * time.Second)
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
	})
}

// A release is carried out although its caller does not wait for the outcome. It is one
// request, not two.
func TestReleaseThatIsNotWaitedForIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		writes := faultdriver.NewCounter(faultdriver.None())
		c := connect(t, faultdriver.Wrap(e.Connector(), about(faultdriver.Writes(writes))), nil)
		for _, a := range []zklock.Acquirer{c.Mutex("x"), zklock.All(c.Mutex("x"), c.Mutex("y"))} {
			l := mustLock(t)(a.Acquire(t.Context()))
			before := writes.Seen()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("Release: %v", err)
			}
			time.Sleep(time.Second)
			if n := writes.Seen() - before; n != 1 {
				t.Errorf("%d requests to release %s, want 1", n, l.Name())
			}
			if n := nodes(e); n != 0 {
				t.Errorf("left behind:\n%s", e.Dump())
			}
		}
	})
}

func TestPredecessorGoneBetweenListAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		var once sync.Once
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "watch" {
				once.Do(func() { mustRelease(t, l) })
			}
			return ctx, nil
		}}
		b := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second))))
	})
}

func TestWaitIsBoundedAcrossASilentPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		ids := e.Sessions()
		if err := b.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range e.Sessions() {
			if id != ids[0] {
				e.Partition(memdriver.AroundSession(id))
			}
		}
		began := time.Now()
		_, err := b.Mutex("x").Acquire(t.Context(), zklock.WithWait(2*time.Second))
		if !errors.Is(err, zklock.ErrUnavailable) || time.Since(began) != 2*time.Second {
			t.Errorf("Acquire returned after %v: %v, want ErrUnavailable after 2s", time.Since(began), err)
		}
		e.Heal()
		mustRelease(t, l)
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context())))
	})
}

func TestOwnNodeDeletedBeforePredecessorLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, b.Mutex("x"), t.Context())
		queue, _ := a.Contenders(t.Context(), "x")
		if err := a.Break(t.Context(), "x", queue[1].Node); err != nil {
			t.Fatal(err)
		}
		third := acquiring(t, c.Mutex("x"), t.Context())
		mustRelease(t, l)
		l = <-third
		none(t, "the waiter whose node was deleted", second)
		mustRelease(t, l)
		mustRelease(t, <-second)
	})
}

// As TestOwnNodeDeletedBeforePredecessorLeaves, but the waiter watches its own node, and the
// event of the deletion never arrives: a grant does not depend on an event.
func TestGrantDoesNotDependOnAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		ownWatch := faultdriver.Nth(2, about(faultdriver.On(faultdriver.Watch, faultdriver.LoseEvent())))
		a, b, c := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), ownWatch), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second) // until it watches its own node
		third := acquiring(t, c.Mutex("x"), t.Context())
		queue, _ := a.Contenders(t.Context(), "x")
		if err := a.Break(t.Context(), "x", queue[1].Node); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		mustRelease(t, l)
		l = <-third
		none(t, "the waiter whose node was deleted", second)
		mustRelease(t, l)
		mustRelease(t, <-second)
	})
}
