package zklock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestNothingIsRegisteredAfterAWait: an acquisition returns after its registration has been removed.
func TestNothingIsRegisteredAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		ctx, cancel := x.Context(t.Context())
		defer cancel()
		time.AfterFunc(1500*time.Millisecond, func() {
			if n := registered(e); n != 1 {
				t.Errorf("%d waits are registered, want 1", n)
			}
		})
		if _, err := a.Mutex("y").Acquire(ctx, zklock.WithWait(2*time.Second)); err == nil {
			t.Error("acquired")
		}
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered after the acquisition has returned", n)
		}
		mustRelease(t, x)
		mustRelease(t, y)
	})
}

// TestNothingListsALockThatWasPassedOn: a lock that a wait holds is passed on to another goroutine after the
// wait's registration has been removed.
func TestNothingListsALockThatWasPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
		a, b := connect(t, e.Connector(), map[string]string{"handover_time": "1m"}), connect(t, e.Connector(), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		ctx, cancel := x.Context(t.Context())
		defer cancel()
		waits := make(chan outcome, 1)
		go func() {
			l, err := a.Mutex("y").Acquire(context.WithoutCancel(ctx))
			waits <- outcome{lock: l, err: err}
		}()
		next := make(chan *zklock.Lock, 1)
		go func() {
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			if n := registered(e); n != 0 {
				t.Errorf("%d waits are registered that list a lock which another goroutine has", n)
			}
			next <- l
		}()
		time.Sleep(1500 * time.Millisecond)
		if n := registered(e); n != 1 {
			t.Errorf("%d waits are registered, want 1", n)
		}
		mustRelease(t, x)
		mustRelease(t, <-next)
		mustRelease(t, y)
		granted(t, <-waits)
	})
}

// TestWaitThatQueuesAgainIsRegisteredAgain: an operator deletes the queue node of a wait, which queues again,
// and is in a circle afterwards.
func TestWaitThatQueuesAgainIsRegisteredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		first := nested(t, x, a.Mutex("y"))
		time.Sleep(1500 * time.Millisecond)
		queue, err := b.Contenders(t.Context(), "y")
		if err != nil || len(queue) != 2 {
			t.Fatal(queue, err)
		}
		if err := memcontrol.Of(e).Delete("/zklock/y/" + queue[1].Node); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		wantDeadlock(t, <-nested(t, y, b.Mutex("x")), "y>x", "x>y")
		mustRelease(t, y)
		granted(t, <-first)
		mustRelease(t, x)
	})
}

// TestWaitLooksAgainIfItCouldNotLook: the victim of a circle cannot read the register for half a minute.
func TestWaitLooksAgainIfItCouldNotLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var blind atomic.Bool
		blind.Store(true)
		inj := faultdriver.If("the register is read", func(op faultdriver.Op) bool {
			return blind.Load() && op.Kind == faultdriver.Children && op.Paths[0] == "/zklock/%waits"
		}, faultdriver.Random(1, 1, faultdriver.Fail(driver.ErrThrottled)))
		a, b := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), inj), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		first := nested(t, x, a.Mutex("y"))
		time.Sleep(300 * time.Millisecond)
		second := nested(t, y, b.Mutex("x"))
		time.Sleep(30 * time.Second)
		blind.Store(false)
		wantDeadlock(t, <-second, "y>x", "x>y")
		mustRelease(t, y)
		granted(t, <-first)
		mustRelease(t, x)
	})
}

// TestSecondLookIsAfterASync: the server of the last wait of a circle lags behind. The circle ends before the
// second look, and the server does not know that yet.
func TestSecondLookIsAfterASync(t *testing.T) {
	for gaveUp := 1400 * time.Millisecond; gaveUp < 1900*time.Millisecond; gaveUp += 50 * time.Millisecond {
		t.Run(fmt.Sprint(gaveUp), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3))
				follower := (e.Leader() + 1) % 3
				a, b := connect(t, e.Connector(e.Leader()), nil), connect(t, e.Connector(follower), nil)
				x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
				memcontrol.Of(e).Lag(follower, 400*time.Millisecond)
				first := nested(t, x, a.Mutex("y"), zklock.WithWait(gaveUp))
				time.Sleep(10 * time.Millisecond)
				second := nested(t, y, b.Mutex("x"))
				if o := <-first; o.err == nil {
					t.Fatal("acquired")
				}
				over := time.Now()
				select {
				case o := <-second:
					t.Fatalf("the victim's error came before the other wait had ended: %v", o.err)
				default:
				}
				time.Sleep(5 * time.Second)
				select {
				case o := <-second:
					t.Fatalf("%v after the circle was over: %v", time.Since(over), o.err)
				default:
				}
				mustRelease(t, x)
				granted(t, <-second)
				mustRelease(t, y)
			})
		})
	}
}
