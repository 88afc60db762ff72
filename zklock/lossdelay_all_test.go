package zklock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An operator breaks one name of an All. The next contender for the other name is granted
// it only after the delay. That is so for every kind of request, from either client, made
// before the loss or after it, and whatever else goes wrong.
func TestLossDelayHoldsBackTheNextAtTheOtherName(t *testing.T) {
	const slack = 100 * time.Millisecond // how long after the delay the grant may be, without other faults
	type world struct {
		e       *memdriver.Ensemble
		a, b, c *zklock.Client // a holds
		holder  int64          // a's session
	}
	for _, c := range []struct {
		what     string
		next     func(w *world, name string) zklock.Acquirer
		late     bool // the next request is made right after the loss
		meantime func(w *world)
	}{
		{what: "a mutex", next: func(w *world, name string) zklock.Acquirer { return w.b.Mutex(name) }},
		{what: "a mutex of the same client", next: func(w *world, name string) zklock.Acquirer { return w.a.Mutex(name) }},
		{what: "a reader", next: func(w *world, name string) zklock.Acquirer { return w.b.RWMutex(name).Reader() }},
		{what: "a writer", next: func(w *world, name string) zklock.Acquirer { return w.b.RWMutex(name).Writer() }},
		{what: "an All", next: func(w *world, name string) zklock.Acquirer { return zklock.All(w.b.Mutex("z"), w.b.Mutex(name)) }},
		{what: "a mutex requested after the loss", late: true, next: func(w *world, name string) zklock.Acquirer { return w.b.Mutex(name) }},
		{what: "a mutex while the holder closes", next: func(w *world, name string) zklock.Acquirer { return w.b.Mutex(name) },
			meantime: func(w *world) { go func() { _ = w.a.Close() }() }},
		{what: "a mutex while the leader changes", next: func(w *world, name string) zklock.Acquirer { return w.b.Mutex(name) },
			meantime: func(w *world) { w.e.Restart(w.e.Leader()) }},
		{what: "a mutex while the holder is cut off", next: func(w *world, name string) zklock.Acquirer { return w.b.Mutex(name) },
			meantime: func(w *world) { w.e.Partition(memdriver.AroundSession(w.holder)) }},
	} {
		for broken, other := range map[string]string{"x": "y", "y": "x"} {
			synctest.Test(t, func(t *testing.T) {
				w := &world{e: delayEnsemble(3)}
				w.a = connect(t, w.e.Connector(), delayed())
				all := mustLock(t)(zklock.All(w.a.Mutex("x"), w.a.Mutex("y")).Acquire(t.Context()))
				w.holder = w.e.Sessions()[0]
				w.b, w.c = connect(t, w.e.Connector(), delayed()), connect(t, w.e.Connector(), delayed())
				var next chan *zklock.Lock
				if !c.late {
					next = acquiring(t, c.next(w, other), t.Context())
				}
				free := acquiring(t, w.c.Mutex(broken), t.Context()) // the operator frees this name, without a delay
				time.Sleep(3 * time.Second)                          // until the holder watches its nodes
				lost := ended(all)
				if n := w.e.Break("/zklock/" + broken); n == 0 {
					t.Fatal("no node was broken")
				}
				at := <-lost
				if c.late {
					next = acquiring(t, c.next(w, other), t.Context())
				}
				if c.meantime != nil {
					c.meantime(w)
				}
				n := <-next
				gap := time.Since(at)
				if gap < lossDelay || c.meantime == nil && gap > lossDelay+slack {
					t.Errorf("%s: %s was granted %v after %s was broken", c.what, other, gap, broken)
				}
				if !errors.Is(all.Err(), zklock.ErrNodeDeleted) {
					t.Errorf("%s: lost because of %v", c.what, all.Err())
				}
				w.e.Heal()
				mustRelease(t, n)
				mustRelease(t, <-free)
			})
		}
	}
}

// slowParent is a context whose Done blocks for a while, once, after armed was set. So a
// context that is derived from it takes that long to end.
type slowParent struct {
	context.Context
	armed atomic.Bool
	takes time.Duration
}

func (s *slowParent) Done() <-chan struct{} {
	if s.armed.Swap(false) {
		time.Sleep(s.takes)
	}
	return s.Context.Done()
}

// One hold has two handles. At a loss the first one ends, then all contexts that are derived from
// it, and then the second one. The delay counts from the end of the second handle, and a Close
// during the delay does not shorten it.
func TestLossDelayIsCountedFromTheLastHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		both := func() zklock.Acquirer { return zklock.All(a.Mutex("x"), a.Mutex("y")) }
		first := mustLock(t)(both().Acquire(t.Context()))
		ctx, cancel := first.Context(t.Context())
		defer cancel()
		second := mustLock(t)(both().Acquire(ctx, zklock.Reenter()))
		slow := &slowParent{Context: t.Context(), takes: time.Second}
		_, leave := first.Context(slow)
		defer leave()
		next := acquiring(t, b.Mutex("y"), t.Context())
		time.Sleep(3 * time.Second) // until the holder watches its nodes
		began, over := ended(first), ended(second)
		slow.armed.Store(true)
		e.Break("/zklock/x")
		from := <-began
		closed := make(chan error, 1)
		go func() { closed <- a.Close() }()
		at := <-over
		if d := at.Sub(from); d != slow.takes {
			t.Fatalf("the second handle ended %v after the first: the slow context does not delay it", d)
		}
		n := <-next
		if gap := time.Since(at); gap < lossDelay {
			t.Errorf("y was granted %v after the last handle ended", gap)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		mustRelease(t, n)
	})
}
