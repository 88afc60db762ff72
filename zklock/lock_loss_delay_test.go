package zklock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// lossDelay is the loss_delay of these tests. It is long compared with everything but the
// session timeout. The ensemble's tick is 500ms.
const lossDelay = 2 * time.Second

// delayed returns the settings of a client with loss_delay.
func delayed() map[string]string {
	return map[string]string{"session_timeout": "6s", "tick_time": "500ms", "loss_delay": lossDelay.String()}
}

func delayEnsemble(servers int) *memdriver.Ensemble {
	return memdriver.New(memdriver.WithServers(servers), memdriver.WithTickTime(500*time.Millisecond), memdriver.WithLatency(time.Millisecond))
}

// A holder that can reach the ensemble again right after its loss still keeps the next
// waiter out until the delay is over.
func TestLossDelayHoldsTheNextBackThoughTheSessionIsReachable(t *testing.T) {
	for _, c := range []struct {
		what   string
		params map[string]string
		gap    func(time.Duration) bool
	}{
		{"with loss_delay", delayed(), func(d time.Duration) bool { return d >= lossDelay && d < lossDelay+100*time.Millisecond }},
		{"without", map[string]string{"session_timeout": "6s", "tick_time": "500ms"}, func(d time.Duration) bool { return d < 100*time.Millisecond }},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := delayEnsemble(1)
			a, b := connect(t, e.Connector(), c.params), connect(t, e.Connector(), nil) // b has no loss_delay and needs none
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			next := acquiring(t, b.Mutex("x"), t.Context())
			time.Sleep(time.Second)
			lost := ended(l)
			cut := memdriver.AroundSession(e.Sessions()[0])
			e.Partition(cut)
			at := <-lost
			e.Heal()
			n := <-next
			if gap := time.Since(at); !c.gap(gap) {
				t.Errorf("%s: granted %v after the loss", c.what, gap)
			}
			if !errors.Is(l.Err(), zklock.ErrLeaseOver) {
				t.Errorf("%s: lost because of %v", c.what, l.Err())
			}
			mustRelease(t, n)
		})
	}
}

func TestLossDelayDoesNotDelayReleasesNorClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		prompt := func(what string, next <-chan *zklock.Lock, began time.Time) *zklock.Lock {
			l := <-next
			if d := time.Since(began); d > 100*time.Millisecond {
				t.Errorf("granted %v after %s", d, what)
			}
			return l
		}
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		began := time.Now()
		mustRelease(t, l)
		l = prompt("a release", next, began)

		next = acquiring(t, a.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		began = time.Now()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if !lostByClose(l.Err()) {
			t.Errorf("after Close: %v", l.Err())
		}
		mustRelease(t, prompt("Close", next, began))
	})
}

// The node of a lock that was lost before Close still stays for loss_delay: Close waits for
// that.
func TestLossDelayOutlastsACloseAfterTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		lost := ended(l)
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		at := <-lost
		e.Heal()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		n := <-next
		if gap := time.Since(at); gap < lossDelay {
			t.Errorf("granted %v after the loss", gap)
		}
		mustRelease(t, n)
	})
}

// When an operator deletes a node of an All, the node's name is free at once. The client
// keeps the other nodes for loss_delay.
func TestLossDelayKeepsTheOtherNodesOfAnAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := delayEnsemble(1)
		a, b := connect(t, e.Connector(), delayed()), connect(t, e.Connector(), delayed())
		all := mustLock(t)(zklock.All(a.Mutex("x"), a.Mutex("y")).Acquire(t.Context()))
		next := acquiring(t, b.Mutex("y"), t.Context())
		time.Sleep(3 * time.Second) // until the holder watches its nodes
		lost := ended(all)
		if n := e.Break("/zklock/x"); n != 1 {
			t.Fatalf("%d nodes were broken", n)
		}
		at := <-lost
		n := <-next
		if gap := time.Since(at); gap < lossDelay || gap > lossDelay+100*time.Millisecond {
			t.Errorf("y was granted %v after x was broken", gap)
		}
		mustRelease(t, n)
		if !errors.Is(all.Err(), zklock.ErrNodeDeleted) {
			t.Errorf("lost because of %v", all.Err())
		}
	})
}

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
				if err := (<-free).Release(t.Context()); err != nil && !errors.Is(err, zklock.ErrNodeDeleted) {
					t.Error(err) // the operator deletes its node, too, after the holder's
				}
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
