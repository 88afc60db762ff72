package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Valid is right in the very instant in which a process goes on that was stopped,
// or a machine that was suspended: before any goroutine or timer has noticed.
func TestValidLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		synctest.Wait()
		if !l.Valid() {
			t.Fatal("not valid right after the grant")
		}
		zklock.Suspend(10 * time.Second)
		if l.Valid() {
			t.Error("valid after the machine was suspended for a session timeout")
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
	})
}

// Until tells of a lock, not of its session.
func TestUntilEndsWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		other := mustLock(t)(c.Mutex("y").Acquire(t.Context())) // the lease goes on
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if until := l.Until(); !until.After(time.Now().Add(5 * time.Second)) {
			t.Errorf("held until %v", until)
		}
		e.Break("/zklock/x")
		if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		if l.Valid() || !l.Until().IsZero() {
			t.Errorf("lost, and valid %v until %v", l.Valid(), l.Until())
		}
		mustRelease(t, other)
		if !other.Until().IsZero() {
			t.Errorf("released, and held until %v", other.Until())
		}
	})
}

// A session with something to lose asks a quorum, once every tenth of its
// timeout; Syncs, which a deposed leader answers, are for idle ones.
func TestHeartbeatsAreCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		d := cost(e, func() { time.Sleep(10 * time.Second) })
		if d.Multis < 9 || d.Multis > 11 || d.MultiOps != d.Multis || d.Syncs != 0 {
			t.Errorf("while held: %+v", d)
		}
		mustRelease(t, l)
		d = cost(e, func() { time.Sleep(10 * time.Second) })
		if d.Multis > 1 || d.Syncs < 3 { // one: the idle container goes
			t.Errorf("while idle: %+v", d)
		}
	})
}

func TestReconnectWithAShorterTimeoutIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"tick_time": "2s"})
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		e.MaxTimeout(0, 8*time.Second)
		e.KillConnection(e.Sessions()[0])
		time.Sleep(2 * time.Second)
		if err := l.Err(); !errors.Is(err, zklock.ErrLost) || l.Valid() {
			t.Errorf("after a reconnect that granted 8s of 10s: valid %v, %v", l.Valid(), err)
		}
	})
}

// No lock and no error at the same time, ever.
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
					t.Errorf("%s: %v, %v", a.Name(), l, err)
				}
			}
		}
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// A lock's own node is watched on the present connection: a watch that did not
// survive a reconnect is armed again.
func TestDeletionAfterAReconnectIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		lost := faultdriver.NewCounter(faultdriver.Once(about(faultdriver.On(faultdriver.Watch, faultdriver.LoseEvent()))))
		c := connect(t, faultdriver.Wrap(e.Connector(), lost), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		time.Sleep(2 * time.Second)
		if lost.Struck() != 1 {
			t.Fatal("the own node was not watched T/6 after the grant")
		}
		e.KillConnection(e.Sessions()[0])
		time.Sleep(3 * time.Second)
		e.Break("/zklock/x")
		time.Sleep(time.Second)
		if err := l.Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("deleted after a reconnect: %v", err)
		}
	})
}

// twoEnsembles is a connector that leads to another ensemble later on.
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

// Tokens of an ensemble that was set back would repeat: nothing is granted any
// more, until somebody has looked and the client is opened anew.
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
			if _, err := c.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrTokenRegression) {
				t.Errorf("after the ensemble was set back: %v", err)
			}
		}
		synctest.Wait()
		if n := nodes(after); n != 0 {
			t.Errorf("left behind:\n%s", after.Dump())
		}
	})
}

// Whoever was lost, and releases late, takes nothing from the next
// holder, and can acquire again.
func TestStaleReleaseLeavesTheNextHolderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		old := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		e.Expire(e.Sessions()[0])
		l := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		time.Sleep(time.Second)
		if err := old.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("late Release: %v", err)
		}
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("the next holder: %v", err)
		}
		again := acquiring(t, a.Mutex("x"), t.Context())
		none(t, "the old holder beside the next", again)
		mustRelease(t, l)
		mustRelease(t, <-again)
	})
}

// Re-entry looks at the lock, not at a counter.
func TestReentryAfterALossIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		reenter := func(ctx context.Context, how string) {
			t.Helper()
			for _, opts := range [][]zklock.AcquireOption{nil, {zklock.Reenter()}} {
				if l, err := c.Mutex("x").Acquire(ctx, opts...); !errors.Is(err, zklock.ErrLost) || l != nil {
					t.Errorf("re-entry after %s: %v", how, err)
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
		zklock.Suspend(10 * time.Second)
		reenter(ctx, "the end of a lease that nobody has noticed")
	})
}
