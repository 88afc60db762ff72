package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// slowLists returns a client and a semaphore that it waits for, because another client holds
// its only permit. The faults strike the client's first lists.
func slowLists(t *testing.T, faults ...faultdriver.Fault) (*memdriver.Ensemble, *zklock.Client, *zklock.Semaphore, *zklock.Lock) {
	e := memdriver.New(memdriver.WithLatency(time.Millisecond))
	held := mustLock(t)(connect(t, e.Connector(), nil).Semaphore("x", 1).Acquire(t.Context()))
	var mu sync.Mutex
	c := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind != faultdriver.Children || len(faults) == 0 {
			return faultdriver.None()
		}
		fault := faults[0]
		faults = faults[1:]
		return fault
	}), nil)
	return e, c, c.Semaphore("x", 1), held
}

// useOnce acquires and releases a lock.
func useOnce(t *testing.T, a zklock.Acquirer) {
	l, err := a.Acquire(t.Context())
	if err == nil {
		err = l.Release(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
}

// Waiters of one session that need a list of a queue while one is under way share the next
// one. They do not use the one that is under way, which may have begun before their own nodes
// were created: each finds its node at once.
func TestWaitersShareLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c, s, held := slowLists(t, faultdriver.DelayReply(time.Second))
		const waiters = 200
		var released sync.WaitGroup
		d := cost(e, func() {
			for range waiters {
				released.Go(func() { useOnce(t, s) })
			}
			time.Sleep(3 * time.Second)
		})
		if waiting := c.Stats().Waiting; waiting != waiters {
			t.Fatalf("%d of %d wait", waiting, waiters)
		}
		if d.Children != 2 || nodes(e) != waiters+1 || d.Deletes > 0 {
			t.Errorf("%d waiters needed %d lists, want one that is slow and one for all that came meanwhile; %d deletes, %d nodes", waiters, d.Children, d.Deletes, nodes(e))
		}
		mustRelease(t, held)
		released.Wait()
	})
}

// A waiter that leaves takes no list from those that share it, whether it lists for all of
// them or waits for the list.
func TestWaiterThatLeavesTakesNoListAlong(t *testing.T) {
	for range 5 { // any of them may be the one that lists
		synctest.Test(t, func(t *testing.T) {
			_, c, s, held := slowLists(t, faultdriver.DelayReply(100*time.Millisecond), faultdriver.HangReply())
			ctx, leave := context.WithCancel(t.Context())
			var left, released sync.WaitGroup
			for range 10 {
				left.Go(func() {
					if _, err := s.Acquire(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("a waiter that left: %v", err)
					}
				})
			}
			stay := c.Semaphore("x", 1)
			time.Sleep(10 * time.Millisecond)
			released.Go(func() { useOnce(t, stay) })
			time.Sleep(time.Second)
			leave()
			left.Wait()
			time.Sleep(time.Minute) // if the one that stays lists, it waits in vain for a while
			if waiting := c.Stats().Waiting; waiting != 1 {
				t.Errorf("%d wait after the others have left, want the one that stays to know its place", waiting)
			}
			mustRelease(t, held)
			released.Wait()
		})
	}
}

// Thousands of waiters with places of their own come at once to a server whose answers are
// slow: the creates below one znode take a transaction each, which takes longer than
// connect_timeout for all of them. None fails while the session works.
func TestBurstOfSeparateWaitersOutlastsConnectTimeout(t *testing.T) {
	const waiters = 1500
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		held := mustLock(t)(connect(t, e.Connector(), nil).Semaphore("x", 1).Acquire(t.Context()))
		c := connect(t, e.Connector(), nil)
		ctx, leave := context.WithCancel(t.Context())
		var left sync.WaitGroup
		for range waiters {
			left.Go(func() {
				if _, err := c.Semaphore("x", 1).Acquire(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiter: %v", err)
				}
			})
		}
		time.Sleep(2 * time.Minute)
		if n := nodes(e); n != waiters+1 {
			t.Errorf("%d nodes, want one of each of %d waiters and of the holder", n, waiters)
		}
		leave()
		left.Wait()
		mustRelease(t, held)
	})
}

// A list without an answer, whose only waiter has left, holds up no later caller.
func TestListOfAWaiterThatLeftHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, s, held := slowLists(t, faultdriver.HangReply())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		began := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.Semaphore("x", 1).TryAcquire(ctx)
		if d := time.Since(began); d > time.Second || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v, want at once that the lock is taken", d, err)
		}
		mustRelease(t, held)
	})
}

// Callers that gave up do not hold up the waiter whose turn has come, although the server is slow
// to list their queues.
func TestListsOfCallersThatLeftHoldUpNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2000
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		slow := faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Children, faultdriver.DelayReply(time.Second)))
		b := connect(t, slow, nil)
		l := mustLock(t)(a.Mutex("w").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("w"), t.Context())
		time.Sleep(10 * time.Second)
		for i := range many { // b knows the znodes then
			mustRelease(t, mustLock(t)(b.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())))
			mustLock(t)(a.Mutex(fmt.Sprint("n", i)).Acquire(t.Context()))
		}
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := b.Mutex(fmt.Sprint("n", i)).Acquire(ctx); err == nil {
					t.Error("acquired a lock that another client holds")
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		began := time.Now()
		mustRelease(t, l)
		mustRelease(t, <-next)
		d := time.Since(began)
		t.Logf("the next holder has the lock %v after the release", d)
		if d > 2*time.Second {
			t.Errorf("the lists of callers that have left held up a grant for %v", d)
		}
	})
}
