package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Valid is right as soon as a stopped process or a suspended machine goes on, even before any
// goroutine or timer has noticed the end of the lease.
func TestValidLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		synctest.Wait()
		if !l.Valid() {
			t.Fatal("not valid right after the grant")
		}
		lease.AddSuspended(10 * time.Second)
		if l.Valid() {
			t.Error("valid after the machine was suspended for a session timeout")
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
	})
}

// Until returns the end of a lock, not that of its session's lease.
func TestUntilEndsWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		other := mustLock(t)(c.Mutex("y").Acquire(t.Context())) // keeps the session's lease renewed
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if until := l.Until(); !until.After(time.Now().Add(5 * time.Second)) {
			t.Errorf("Until is %v, want more than 5s from now", until)
		}
		e.Break("/zklock/x")
		if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		if l.Valid() || !l.Until().IsZero() {
			t.Errorf("a lost lock has Valid %v and Until %v, want false and zero", l.Valid(), l.Until())
		}
		mustRelease(t, other)
		if !other.Until().IsZero() {
			t.Errorf("a released lock has Until %v, want zero", other.Until())
		}
	})
}

// A session that holds a lock sends a heartbeat that a quorum commits about every fifth of
// its timeout, and a Sync every tenth. An idle session sends Syncs only, which a deposed
// leader answers too.
func TestHeartbeatsAreCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		d := cost(e, func() { time.Sleep(100 * time.Second) })
		if d.Multis < 33 || d.Multis > 55 || d.MultiOps != d.Multis || d.Syncs < 100 || d.Syncs > 112 {
			t.Errorf("while the lock is held, in 100s: %+v, want 33 to 55 multis of one operation and 100 to 112 Syncs", d)
		}
		mustRelease(t, l)
		d = cost(e, func() { time.Sleep(10 * time.Second) })
		if d.Multis > 1 || d.Syncs < 3 { // the one is the removal of the idle container
			t.Errorf("while the session is idle: %+v, want at most one multi and at least 3 Syncs", d)
		}
	})
}

// With the default settings the lease of a session that holds a lock never gets shorter than
// 3.4 s: so long an outage the lock survives.
func TestLeastLeaseWhileHeld(t *testing.T) {
	const hop, least = 5 * time.Millisecond, 3400 * time.Millisecond
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("other writes %v", busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(hop))
				c := connect(t, e.Connector(), nil)
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				time.Sleep(10 * time.Second) // a new session's lease is longer at first
				shortest := time.Hour
				for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
					if shortest = min(shortest, time.Until(l.Until())); busy && rand.IntN(100) == 0 {
						mustRelease(t, mustLock(t)(c.Mutex("y").Acquire(t.Context())))
					}
				}
				t.Logf("the shortest lease was %v", shortest)
				if shortest < least {
					t.Errorf("the shortest lease was %v, want at least %v", shortest, least)
				}
				mustRelease(t, l)
			})
		})
	}
}

// TestShortLeasesAreKept: a healthy ensemble does not lose a lock with the shortest session
// timeouts that the client accepts.
func TestShortLeasesAreKept(t *testing.T) {
	for _, test := range []struct {
		timeout, tick string
		delay         string
		hop           time.Duration
	}{
		{"1102ms", "100ms", "0", time.Millisecond}, {"1102ms", "100ms", "0", 30 * time.Millisecond}, {"1440ms", "333ms", "0", 30 * time.Millisecond},
		{"1682ms", "500ms", "0", 30 * time.Millisecond}, {"2s", "666ms", "0", 30 * time.Millisecond}, {"2s", "333ms", "560ms", 30 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(test.hop), memdriver.WithTickTime(100*time.Millisecond))
				c := connect(t, e.Connector(), map[string]string{"session_timeout": test.timeout, "tick_time": test.tick, "loss_delay": test.delay})
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				select {
				case <-l.Done():
					t.Fatal(l.Err())
				case <-time.After(2 * time.Minute):
				}
				mustRelease(t, l)
			})
		})
	}
}

// TestHeartbeatsGoOnWithoutTheirSyncs: a server that refuses Syncs costs some of the lease, and
// not the lock.
func TestHeartbeatsGoOnWithoutTheirSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Sync, faultdriver.Fail(driver.ErrThrottled))), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		select {
		case <-l.Done():
			t.Error(l.Err())
		case <-time.After(2 * time.Minute):
			mustRelease(t, l)
		}
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

// Acquire and TryAcquire never return a nil lock with a nil error.
func TestAcquireWithAnEndedContextIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, a := range []zklock.Acquirer{c.Mutex("x"), c.RWMutex("x").Reader(), c.Semaphore("s", 2), zklock.All(c.Mutex("x"), c.Mutex("y"))} {
			for _, acquire := range []func(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error){a.Acquire, a.TryAcquire} {
				l, err := acquire(ctx)
				if l != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("%s: lock %v, error %v; want context.Canceled and ErrNotAcquired", a.Name(), l, err)
				}
			}
		}
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// A held lock's node is watched on the present connection: a watch that did not survive
// a reconnect is armed again.
func TestDeletionAfterAReconnectIsALoss(t *testing.T) {
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

// twoEnsembles is a connector that connects to another ensemble from some time on.
type twoEnsembles struct {
	driver.Connector

	mu    sync.Mutex
	later driver.Connector // guarded by mu
}

func (c *twoEnsembles) set(later driver.Connector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.later = later
}

func (c *twoEnsembles) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	c.mu.Lock()
	to := c.Connector
	if c.later != nil {
		to = c.later
	}
	c.mu.Unlock()
	return to.Connect(ctx, timeout)
}

// An ensemble that was set back to an older state would give tokens a second time. From then on
// the client grants nothing: an operator must look into it, and open a new client.
func TestTokensThatRunBackAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := memdriver.New(), memdriver.New()
		both := &twoEnsembles{Connector: before.Connector()}
		c := connect(t, both, nil)
		for range 20 {
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		}
		both.set(after.Connector())
		before.ExpireAll()
		time.Sleep(time.Second)
		for range 2 {
			if _, err := c.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrBadEnsemble) {
				t.Errorf("Acquire after the ensemble was set back: %v, want ErrBadEnsemble", err)
			}
		}
		synctest.Wait()
		if n := nodes(after); n != 0 {
			t.Errorf("left behind:\n%s", after.Dump())
		}
	})
}

// A holder that lost the lock and releases it late takes nothing from the next holder,
// and can acquire again.
func TestStaleReleaseLeavesTheNextHolderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		old := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		e.Expire(e.Sessions()[0])
		l := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		time.Sleep(time.Second)
		if err := old.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("late Release: %v, want ErrLost", err)
		}
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("Verify of the next holder: %v", err)
		}
		again := acquiring(t, a.Mutex("x"), t.Context())
		none(t, "the old holder, while the next one holds,", again)
		mustRelease(t, l)
		mustRelease(t, <-again)
	})
}

// Re-entry checks whether the lock is still held, not a counter.
func TestReentryAfterALossIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		reenter := func(ctx context.Context, how string) {
			t.Helper()
			for _, opts := range [][]zklock.AcquireOption{nil, {zklock.Reenter()}} {
				if l, err := c.Mutex("x").Acquire(ctx, opts...); !errors.Is(err, zklock.ErrLost) || l != nil {
					t.Errorf("re-entry after %s: %v, want ErrLost", how, err)
				}
			}
		}
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		e.Break("/zklock/x")
		if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		reenter(ctx, "a deletion")

		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel = l.Context(t.Context())
		defer cancel()
		lease.AddSuspended(10 * time.Second)
		reenter(ctx, "the end of a lease that no goroutine has noticed")
	})
}

// TestMinLease: while the ensemble answers, the lease of a lock never gets shorter than
// MinLease says, for as long as the lock is held. It gets that short, or almost.
func TestMinLease(t *testing.T) {
	for _, c := range []struct{ timeout, tick time.Duration }{
		{30 * time.Second, 3 * time.Second}, {10 * time.Second, 3 * time.Second}, {10 * time.Second, 500 * time.Millisecond},
		{6 * time.Second, 2 * time.Second}, {3 * time.Second, time.Second}, {2 * time.Second, 666 * time.Millisecond}, {2 * time.Second, 100 * time.Millisecond},
		{1682 * time.Millisecond, 500 * time.Millisecond}, {1440 * time.Millisecond, 333 * time.Millisecond}, {1102 * time.Millisecond, 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithTickTime(c.tick))
			defer e.Close()
			client := connect(t, e.Connector(), map[string]string{"session_timeout": c.timeout.String(), "tick_time": c.tick.String()})
			l := mustLock(t)(client.Mutex("x").Acquire(t.Context()))
			least := l.MinLease()
			if granted := l.SessionTimeout(); granted != c.timeout {
				t.Errorf("the granted timeout: %v, want %v", granted, c.timeout)
			}
			shortest := c.timeout
			for range 3000 {
				time.Sleep(c.timeout / 300)
				synctest.Wait()
				shortest = min(shortest, time.Until(l.Until()))
			}
			if shortest < least || shortest > least+c.timeout/5 {
				t.Errorf("timeout %v, tick %v: the lease got as short as %v, and at least %v is left", c.timeout, c.tick, shortest, least)
			}
			if now := l.MinLease(); now != least || least <= 0 {
				t.Errorf("timeout %v: at least %v is left, and before it was %v", c.timeout, now, least)
			}
			mustRelease(t, l)
		})
	}
}
