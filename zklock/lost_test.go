package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Two calls notice that a node of an All is gone. The other node still stays for
// loss_delay.
func TestLossSeenTwiceIsDelayedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		all := mustLock(t)(zklock.All(a.Mutex("x"), a.Mutex("y")).Acquire(t.Context()))
		next := acquiring(t, b.Mutex("y"), t.Context())
		time.Sleep(100 * time.Millisecond)
		lost := ended(all)
		e.Break("/zklock/x")
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := all.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		at := <-lost
		n := <-next
		if gap := time.Since(at); gap < lossDelay {
			t.Errorf("y was granted %v after the loss", gap)
		}
		mustRelease(t, n)
	})
}

// A second node of an All is deleted while the Lost hook still runs for the first one.
func TestSecondLossWhileTheFirstIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		slow := zklock.Hooks{Lost: func(context.Context, zklock.LostEvent) { time.Sleep(50 * time.Millisecond) }}
		a, b := connect(t, e.Connector(), delayed(), zklock.WithHooks(slow)), connect(t, e.Connector(), delayed())
		all := mustLock(t)(zklock.All(a.Mutex("x"), a.Mutex("y"), a.Mutex("z")).Acquire(t.Context()))
		next := acquiring(t, b.Mutex("z"), t.Context())
		time.Sleep(3 * time.Second)
		lost := ended(all)
		e.Break("/zklock/x")
		e.Break("/zklock/y")
		at := <-lost
		n := <-next
		if gap := time.Since(at); gap < lossDelay {
			t.Errorf("z was granted %v after the loss", gap)
		}
		mustRelease(t, n)
	})
}

// The client notes a loss before any caller can learn of it. So a Close right afterwards
// waits for loss_delay.
func TestCloseRightAfterALossIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		slow := zklock.Hooks{Lost: func(context.Context, zklock.LostEvent) { time.Sleep(50 * time.Millisecond) }}
		a, b := connect(t, e.Connector(), delayed(), zklock.WithHooks(slow)), connect(t, e.Connector(), delayed())
		all := mustLock(t)(zklock.All(a.Mutex("x"), a.Mutex("y")).Acquire(t.Context()))
		next := acquiring(t, b.Mutex("y"), t.Context())
		time.Sleep(3 * time.Second)
		lost := ended(all)
		e.Break("/zklock/x")
		at := <-lost
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		n := <-next
		if gap := time.Since(at); gap < lossDelay {
			t.Errorf("y was granted %v after the loss", gap)
		}
		mustRelease(t, n)
	})
}

// All locks of a session end before the Lost hook is called for the first. The hook may
// take longer than the ensemble takes to let other clients in.
func TestLossesAreNotHeldUpByHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		slow := zklock.Hooks{Lost: func(context.Context, zklock.LostEvent) { time.Sleep(20 * time.Second) }}
		a, b := connect(t, e.Connector(), map[string]string{"session_timeout": "6s", "tick_time": "500ms"}, zklock.WithHooks(slow)), connect(t, e.Connector(), nil)
		l1 := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		l2 := mustLock(t)(a.Mutex("y").Acquire(t.Context()))
		next1 := acquiring(t, b.Mutex("x"), t.Context())
		next2 := acquiring(t, b.Mutex("y"), t.Context())
		time.Sleep(time.Second)
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		n1, n2 := <-next1, <-next2
		if l1.Err() == nil || l2.Err() == nil {
			t.Errorf("another client holds both locks, and the errors of the lost ones are %v and %v", l1.Err(), l2.Err())
		}
		mustRelease(t, n1)
		mustRelease(t, n2)
	})
}

// A goroutine that was handed a lock stops counting as a waiter at once, not only when it
// runs again.
func TestHandedLockIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a := connect(t, e.Connector(), map[string]string{"max_waiters": "1", "handover_time": "1h", "handover_limit": "1000"})
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 200 {
					l, err := a.Mutex("x").Acquire(t.Context())
					if errors.Is(err, zklock.ErrTooManyWaiters) {
						refused.Add(1)
						continue
					} else if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
					_ = l.Release(t.Context())
				}
			})
		}
		wg.Wait()
		if n := refused.Load(); n > 0 {
			t.Errorf("%d of 400 refused, though one of two goroutines always holds", n)
		}
	})
}

// A holder is cut off and does not come back. The expiry of its session lets the next
// waiter in, and the lock has ended loss_delay before that.
func TestLossDelayEndsTheLockBeforeTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		lost := ended(l)
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		n := <-next
		if gap := time.Since(<-lost); gap < lossDelay {
			t.Errorf("granted %v after the loss", gap)
		}
		mustRelease(t, n)
		e.Heal()
	})
}

// If the function returns the cause of its context, as it should, the error of Do reports
// the loss once. If the function returns another error, Do's error has both.
func TestDoReportsALossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		broken := errors.New("half done")
		for _, returned := range []error{nil, context.Canceled, broken} {
			err := zklock.Do(t.Context(), c.Mutex("x"), func(ctx context.Context, _ *zklock.Lock) error {
				e.ExpireAll()
				<-ctx.Done()
				if returned == context.Canceled {
					return fmt.Errorf("stopped: %w", context.Cause(ctx))
				}
				return returned
			})
			// One line with the loss first: it matters more than the function's own error.
			if text := err.Error(); strings.Contains(text, "\n") || returned == broken && strings.Index(text, "lost") > strings.Index(text, broken.Error()) {
				t.Errorf("%q", text)
			}
			if !errors.Is(err, zklock.ErrLost) || returned == broken && !errors.Is(err, broken) {
				t.Errorf("the function returned %v, and Do returned %v", returned, err)
			}
			if n := strings.Count(err.Error(), "session expired"); n != 1 {
				t.Errorf("the function returned %v, and Do's error reports the loss %d times: %v", returned, n, err)
			}
		}
	})
}

// Handles end one after the other, and contexts may end slowly. The session is closed, which
// lets other clients in, only when the last of them has ended.
func TestSessionIsClosedAfterTheLastHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		const held = 5
		var locks []*zklock.Lock
		var contexts []context.Context
		for _, name := range names(held) {
			l := mustLock(t)(a.Mutex(name).Acquire(t.Context()))
			slow := &slowParent{Context: t.Context(), takes: time.Second}
			ctx, cancel := l.Context(slow)
			defer cancel()
			slow.armed.Store(true)
			locks, contexts = append(locks, l), append(contexts, ctx)
		}
		var rivals sync.WaitGroup
		for _, name := range names(held) {
			rivals.Go(func() {
				n := mustLock(t)(b.Mutex(name).Acquire(t.Context()))
				for i, l := range locks {
					if l.Err() == nil || contexts[i].Err() == nil {
						t.Errorf("%s is granted to another client, and %s has error %v, its context %v", n.Name(), l.Name(), l.Err(), contexts[i].Err())
					}
				}
				mustRelease(t, n)
			})
		}
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		rivals.Wait()
	})
}

// A function may release the lock itself, and may not look at the error. Do reports the loss
// nevertheless.
func TestDoReportsALossAfterTheFunctionsOwnRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := connect(t, e.Connector(), nil)
		for _, own := range []error{nil, errors.New("no such order")} {
			err := zklock.Do(t.Context(), c.Mutex("x"), func(ctx context.Context, lock *zklock.Lock) error {
				defer lock.Release(context.WithoutCancel(ctx))
				e.ExpireAll()
				<-ctx.Done()
				return own
			})
			if !errors.Is(err, zklock.ErrLost) || own != nil && !errors.Is(err, own) {
				t.Errorf("Do of a function that returns %v: %v, want one that matches ErrLost and that", own, err)
			}
		}
	})
}
