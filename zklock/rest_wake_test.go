package zklock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// wake has a client wait as the third in a queue, so far back that its session rests (proves no
// lease). It calls begin, pauses for after, and lets the contender ahead release. wake reports how
// many sessions the client has lost twenty seconds later, and whether it got the lock before the
// contender behind it.
func wake(t *testing.T, decide func(faultdriver.Op) faultdriver.Fault, after time.Duration, begin func()) (lost uint64, inOrder bool) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		time.Sleep(time.Second)
		c := connect(t, faultcontrol.Control(e.Connector(), decide), nil)
		third := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		fourth := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		time.Sleep(time.Minute)
		mustRelease(t, held)
		next := soon(t, "the second", second)
		time.Sleep(time.Minute)
		begin()
		time.Sleep(after)
		mustRelease(t, next)
		select {
		case l := <-third:
			inOrder = true
			time.Sleep(20 * time.Second)
			lost = c.Stats().SessionsLost
			_ = l.Release(t.Context())
			mustRelease(t, soon(t, "the fourth", fourth))
		case l := <-fourth:
			lost = c.Stats().SessionsLost
			mustRelease(t, l)
			mustRelease(t, soon(t, "the third", third))
		case <-time.After(time.Minute):
			t.Fatal("no contender has the lock after a minute")
		}
	})
	return lost, inOrder
}

// TestWakeWhileSyncsAreRefused: at whatever moment a waiter wakes, it keeps its place, and then
// its lock.
func TestWakeWhileSyncsAreRefused(t *testing.T) {
	refuse := func(op faultdriver.Op) faultdriver.Fault {
		if op.Kind == faultdriver.Sync {
			return faultdriver.Fail(driver.ErrThrottled)
		}
		return faultdriver.None()
	}
	for after := time.Duration(0); after < 8*time.Second; after += 100 * time.Millisecond {
		if lost, inOrder := wake(t, refuse, after, func() {}); lost > 0 || !inOrder {
			t.Errorf("woken after %v: %d sessions were lost; got the lock in its turn: %v", after, lost, inOrder)
		}
	}
}

// TestWakeAfterAStall: the ensemble answers late for some seconds, while the connection stays.
// A waiter that wakes when that is over keeps its place.
func TestWakeAfterAStall(t *testing.T) {
	for stall := 3 * time.Second; stall < 8500*time.Millisecond; stall += 250 * time.Millisecond {
		var until atomic.Int64 // in nanoseconds since the Unix epoch
		slow := func(faultdriver.Op) faultdriver.Fault {
			if d := time.Until(time.Unix(0, until.Load())); d > 0 {
				return faultdriver.DelayReply(d)
			}
			return faultdriver.None()
		}
		if lost, inOrder := wake(t, slow, stall, func() { until.Store(time.Now().Add(stall).UnixNano()) }); lost > 0 || !inOrder {
			t.Errorf("after a stall of %v: %d sessions were lost; got the lock in its turn: %v", stall, lost, inOrder)
		}
	}
}

// TestWaitThatEndsWhileSyncsAreRefused: the ensemble answers, so the wait was one for the lock.
func TestWaitThatEndsWhileSyncsAreRefused(t *testing.T) {
	for after := time.Duration(0); after < 8*time.Second; after += 200 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
			second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
			c := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Sync, faultdriver.Fail(driver.ErrThrottled))), nil)
			if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Minute+after)); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("a wait of a minute and %v: %v, want ErrNotAcquired", after, err)
			}
			mustRelease(t, held)
			mustRelease(t, soon(t, "the second", second))
		})
	}
}
