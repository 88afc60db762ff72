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
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A Session hook that is still busy with the event of a lost connection does not delay
// the end of the lock when the lease is over.
func TestBusySessionHookDoesNotHoldUpALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := zklock.Hooks{Session: func(e zklock.SessionEvent) {
			if e.State != driver.Connected {
				time.Sleep(time.Minute)
			}
		}}
		a, b := connect(t, e.Connector(), nil, zklock.WithHooks(slow)), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		time.Sleep(time.Second)
		id := e.Sessions()[0]
		next := acquiring(t, b.Mutex("x"), t.Context())
		e.Partition(memdriver.AroundSession(id).Reset())
		n := <-next
		if l.Err() == nil || ctx.Err() == nil {
			t.Errorf("another client holds, and the lock's error is %v, its context's %v", l.Err(), ctx.Err())
		}
		mustRelease(t, n)
		e.Heal()
	})
}

// Close returns although the Operation hook takes longer for a heartbeat than the time
// between two heartbeats.
func TestCloseIsNotHeldUpByBusyOperationHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind == "heartbeat" {
				time.Sleep(1500 * time.Millisecond)
			}
			return ctx, nil
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(slow))
		mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		time.Sleep(10 * time.Second)
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// Session events are reported in order, and the newest state is always reported, however
// long a hook takes.
func TestBusySessionHookSeesTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var states []driver.State
		slow := zklock.Hooks{Session: func(e zklock.SessionEvent) {
			time.Sleep(7 * time.Second)
			if n := len(states); n == 0 || states[n-1] != e.State {
				states = append(states, e.State)
			}
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(slow))
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		const reconnects = 100
		for range reconnects {
			e.KillConnection(e.Sessions()[0])
			time.Sleep(time.Second)
		}
		if !l.Valid() {
			t.Error("the lock is not valid")
		}
		e.ExpireAll()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if last := states[len(states)-1]; last != driver.Expired && last != driver.Closed {
			t.Errorf("the last state reported is %v", last)
		}
		if n := len(states); n < 10 || n > 2*reconnects+2 {
			t.Errorf("%d of %d changes of state were reported", n, 2*reconnects+2)
		}
	})
}

// Creates below one znode are sent one after the other. When the session ends, those that
// have not been sent fail without a call of the Operation hook, which may be slow.
func TestCloseIsNotHeldUpByPendingWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind == "enqueue" {
				time.Sleep(500 * time.Millisecond)
			}
			return ctx, nil
		}}
		c := connect(t, e.Connector(), map[string]string{"connect_timeout": "10m"}, zklock.WithHooks(slow))
		var waiters sync.WaitGroup
		for range 300 {
			waiters.Go(func() {
				if _, err := c.Semaphore("x", 3).Acquire(t.Context()); err != nil && !errors.Is(err, zklock.ErrClosed) {
					t.Error(err)
				}
			})
		}
		time.Sleep(3 * time.Second)
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		waiters.Wait()
	})
}
