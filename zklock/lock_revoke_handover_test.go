package zklock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A revoked place is not handed over. The next goroutine of the process queues behind other
// processes, whether the first holder wanted to be asked or not.
func TestRevokedPlaceIsNotHandedOver(t *testing.T) {
	for _, opts := range [][]zklock.AcquireOption{nil, {zklock.WithRevocable()}} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			params := map[string]string{"handover_time": "1h", "handover_limit": "100"}
			a, b := connect(t, e.Connector(), params), connect(t, e.Connector(), nil)
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), opts...))
			time.Sleep(10 * time.Second) // the client watches its node by now
			mine := acquiring(t, a.Mutex("x"), t.Context(), zklock.WithRevocable())
			theirs := acquiring(t, b.Mutex("x"), t.Context())
			revoke(t, b, "x", "r")
			mustRelease(t, l)
			none(t, "the next goroutine of the process", mine)
			mustRelease(t, soon(t, "the other process", theirs))
			l = <-mine
			if revoked(l) || l.Token().Turn != 0 {
				t.Errorf("the next holder was asked: %v, token %v", revoked(l), l.Token())
			}
			mustRelease(t, l)
		})
	}
}

// A place goes from a holder without WithRevocable to one with it, and back. The client watches it
// from the second holder on. A request reaches only the goroutine that holds the place at that
// moment.
func TestRevocationAfterAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"handover_time": "1h"}), connect(t, e.Connector(), nil)
		first := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, a.Mutex("x"), t.Context(), zklock.WithRevocable())
		third := acquiring(t, a.Mutex("x"), t.Context())
		fourth := acquiring(t, a.Mutex("x"), t.Context(), zklock.WithRevocable())
		mustRelease(t, first)
		l := <-second
		synctest.Wait()
		if got := cost(e, func() { mustRelease(t, l) }); revoked(l) || got != free {
			t.Errorf("a hand-over cost %+v; the holder was asked: %v", got, revoked(l))
		}
		l = <-third
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		if got := cost(e, func() { mustRelease(t, l) }); got != free || l.Revoked() != nil {
			t.Errorf("a hand-over cost %+v", got)
		}
		l = <-fourth
		revoke(t, b, "x", "r")
		if !revoked(l) || l.Token().Turn != 3 || !errors.Is(context.Cause(ctx), zklock.ErrReleased) {
			t.Errorf("asked: %v, token %v; the context of the holder before: %v", revoked(l), l.Token(), context.Cause(ctx))
		}
		mustRelease(t, l)
	})
}

// A request that a client has not read yet, because no holder wanted to be asked, reaches the
// first holder that does.
func TestRevocationBeforeAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"handover_time": "1h"}), connect(t, e.Connector(), nil)
		first := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, a.Mutex("x"), t.Context(), zklock.WithRevocable())
		revoke(t, b, "x", "r")
		mustRelease(t, first)
		if l := <-second; !revoked(l) {
			t.Error("the second holder was not asked")
		} else {
			mustRelease(t, l)
		}
	})
}

// A revoked place is not kept after its use, and a kept place that is revoked leaves the queue.
func TestRevokedPlaceIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := keeping(t, e, "keep", "1h"), connect(t, e.Connector(), nil)
		keep(t, e, a.Mutex("x"))
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
		if l.Token().Turn == 0 {
			t.Fatal("the lock does not have the kept place")
		}
		revoke(t, b, "x", "r")
		if !revoked(l) {
			t.Error("the holder of a kept place was not asked")
		}
		mustRelease(t, l)
		synctest.Wait()
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes after the release of a revoked lock, want none", n)
		}
		keep(t, e, a.Mutex("x"))
		time.Sleep(30 * time.Second) // the client watches its node by now
		if nodes(e) != 1 {
			t.Fatal("the name is not kept again")
		}
		if err := b.Revoke(t.Context(), "x", holder(t, b, "x").Node, "r"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := nodes(e); n != 0 || a.Stats().Kept != 0 {
			t.Errorf("%d nodes, and %d kept places, after a kept place was revoked", n, a.Stats().Kept)
		}
	})
}

// A place that is revoked while the next goroutine waits for a longer lease is not handed over
// to it either: it takes a place of its own.
func TestReservedPlaceIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var slow atomic.Bool
		c := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
			if slow.Load() && op.Kind == faultdriver.Multi {
				return faultdriver.NotSent() // no lease is proven
			}
			return faultdriver.None()
		}), map[string]string{"handover_time": "1m"})
		other := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
		next := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithRevocable())
		slow.Store(true)
		for time.Until(l.Until()) > 2*time.Second {
			time.Sleep(100 * time.Millisecond)
		}
		mustRelease(t, l)
		none(t, "the next goroutine, on a lease that is nearly over,", next)
		revoke(t, other, "x", "r")
		slow.Store(false)
		n := <-next
		if c.Stats().SessionsOpened != 1 {
			t.Fatal("the session was lost meanwhile")
		}
		if n.Token().Zxid == l.Token().Zxid || revoked(n) {
			t.Errorf("token %v after %v, asked: %v; want a place of its own", n.Token(), l.Token(), revoked(n))
		}
		mustRelease(t, n)
	})
}
