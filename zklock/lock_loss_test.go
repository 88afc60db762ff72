package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

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

// TestSuspensionIsTheCause: a lock that was lost because its machine was suspended says so,
// whether the caller or the session notices the loss first, and its cause still matches
// ErrLeaseOver. After a suspension that the lock has survived, an outage is the cause.
func TestSuspensionIsTheCause(t *testing.T) {
	corekit.Short(t)
	const because = ", because the machine was suspended for 12s"
	for what, c := range map[string]struct {
		lose func(t *testing.T, e *memdriver.Ensemble, l *zklock.Lock) error
		want string
	}{
		"the caller notices it": {func(t *testing.T, _ *memdriver.Ensemble, l *zklock.Lock) error {
			lease.AddSuspended(12 * time.Second)
			return l.Release(t.Context())
		}, because},
		"the session notices it": {func(t *testing.T, _ *memdriver.Ensemble, l *zklock.Lock) error {
			lease.AddSuspended(12 * time.Second)
			<-l.Done()
			return l.Err()
		}, because},
		"an outage": {func(t *testing.T, e *memdriver.Ensemble, l *zklock.Lock) error {
			lease.AddSuspended(2 * time.Second)
			time.Sleep(20 * time.Second)
			e.Partition(memdriver.AroundSession(e.Sessions()[0]))
			<-l.Done()
			return l.Err()
		}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				defer e.Close()
				var log locked
				c1 := connect(t, e.Connector(), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				l := mustLock(t)(c1.Mutex("x").Acquire(t.Context()))
				time.Sleep(time.Minute)
				err := c.lose(t, e, l)
				want := "lease ran out before a quorum renewed it" + c.want
				if !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zklock.ErrLeaseOver) || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("the loss is %q, which matches ErrLeaseOver: %v; want %q", err, errors.Is(err, zklock.ErrLeaseOver), want)
				}
				e.Heal()
				synctest.Wait()
				if lines := log.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, `cause="`+want+`"`) {
					t.Errorf("the log is %q, want one line with the cause %q", lines, want)
				}
			})
		})
	}
}

// The Lost hook gets the very Lock that the caller has, however old it is.
func TestLossOfAnOldLockIsReportedWithItsHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ensemble := memdriver.New()
		defer ensemble.Close()
		reported := make(chan *zklock.Lock, 1)
		var id atomic.Int64
		c, err := zklock.OpenConnector(ensemble.Connector(), zklock.WithHooks(zklock.Hooks{
			Lost:    func(_ context.Context, e zklock.LostEvent) { reported <- e.Lock },
			Session: func(e zklock.SessionEvent) { id.Store(e.ID) },
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		ensemble.Expire(id.Load())
		if got := <-reported; got != l {
			t.Errorf("the Lost hook got the Lock %p, the caller has %p", got, l)
		}
		<-l.Done()
	})
}

func TestReconnectWithAShorterTimeoutIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"tick_time": "2s"})
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		memcontrol.Of(e).MaxTimeout(0, 8*time.Second)
		e.KillConnection(e.Sessions()[0])
		time.Sleep(2 * time.Second)
		if err := l.Err(); !errors.Is(err, zklock.ErrLost) || l.Valid() {
			t.Errorf("after a reconnect that granted 8s of 10s: valid %v, %v", l.Valid(), err)
		}
	})
}

// A held lock's node is watched on the present connection: a watch that did not survive
// a reconnect is armed again.
func TestDeletionAfterAReconnectIsALoss(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		lost := faultdriver.NewCounter(faultdriver.Once(about(faultdriver.On(faultdriver.Watch, faultdriver.LoseEvent()))))
		c := connect(t, faultdriver.Wrap(e.Connector(), lost), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		time.Sleep(2 * time.Second)
		if lost.Struck() != 1 {
			t.Fatal("the lock's node was not watched a sixth of the session timeout after the grant")
		}
		e.KillConnection(e.Sessions()[0])
		time.Sleep(3 * time.Second)
		e.Break("/zklock/x")
		time.Sleep(time.Second)
		if err := l.Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("the lock whose node was deleted after a reconnect: %v, want ErrLost", err)
		}
	})
}

// A goroutine whose Release finds that the lease has run out is not refused afterwards because of that
// lock: it has met no other contender.
func TestTryAfterALossThatReleaseHasFound(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := connect(t, e.Connector(), nil)
			l := mustLock(t)(c.Mutex("a").Acquire(t.Context()))
			time.Sleep(time.Second)
			synctest.Wait()
			lease.AddSuspended(time.Minute)
			if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
				t.Fatalf("release: %v, want ErrLost", err)
			}
			again, err := c.Mutex("a").TryAcquire(t.Context())
			switch {
			case err == nil:
				mustRelease(t, again)
			case strings.Contains(err.Error(), fmt.Sprint("/", os.Getpid())): // the node of the lost session may still be there
				t.Errorf("a try after the loss: %v; this process holds nothing", err)
			}
		})
	}
}
