package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestWithoutHandoverHasATokenOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		handed := acquiring(t, c.Mutex("x"), t.Context())
		own := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithoutHandover())
		mustRelease(t, l)
		h := <-handed
		if h.Token().Zxid != l.Token().Zxid || h.Token().Turn != l.Token().Turn+1 {
			t.Errorf("the token after a hand-over is %v after %v, want the same Zxid and the next Turn", h.Token(), l.Token())
		}
		mustRelease(t, h)
		o := <-own
		if o.Token().Zxid == h.Token().Zxid || o.Token().Compare(h.Token()) <= 0 || o.Token().Turn != 0 {
			t.Errorf("the token without hand-over is %v after %v, want a greater Zxid and no Turn", o.Token(), h.Token())
		}
		mustRelease(t, o)
	})
}

func TestHandoverLimitLetsOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"handover_limit": "2"}), connect(t, e.Connector(), nil)
		first := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		var order []string
		done := make(chan struct{})
		take := func(c *zklock.Client, client string) {
			go func() {
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				order = append(order, client)
				time.Sleep(time.Millisecond)
				mustRelease(t, l)
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		for range 5 {
			take(a, "a")
		}
		take(b, "b") // behind a's node
		mustRelease(t, first)
		for range 6 {
			<-done
		}
		if got := len(order); got != 6 {
			t.Fatalf("%d locks were acquired, want 6: %v", got, order)
		}
		if order[3] != "b" {
			t.Errorf("handover_limit=2: the clients' order is %v, want b fourth", order)
		}
	})
}

// handover_limit applies only to a place whose creation may have found other contenders in
// the queue. handover_time always applies.
func TestHandoverIsUnlimitedWithoutOtherWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		in := &corekit.Section{Room: 1}
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() { in.Work(c.Mutex("x"), 1, time.Millisecond) })
		}
		wg.Wait()
		if n := c.Stats().Handovers; n != 59 {
			t.Errorf("%d hand-overs among 60 goroutines within handover_time, want 59", n)
		}
		before := c.Stats().Handovers
		for range 10 {
			wg.Go(func() { in.Work(c.Mutex("x"), 1, 40*time.Millisecond) })
		}
		wg.Wait()
		// A place is passed on 40ms and 80ms after its grant, and given up after 120ms.
		if n := c.Stats().Handovers - before; n != 6 {
			t.Errorf("%d hand-overs among 10 holders of 40ms each, want 2 for every 3", n)
		}
		for _, f := range in.Faults {
			t.Error(f)
		}
	})
}

// TestHandoverIsUnlimitedOnceOthersHaveGone: a second client has two places in the queue. The
// goroutines of the first client get a place between those two, where handover_limit bounds the
// hand-overs, and then one behind both. When the second client has left, that place is alone in the
// queue, so it is passed on to all remaining goroutines.
func TestHandoverIsUnlimitedOnceOthersHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, visitor := connect(t, e.Connector(), map[string]string{"handover_limit": "1", "handover_time": "1h"}), connect(t, e.Connector(), nil)
		const goroutines = 40
		in := &corekit.Section{Room: 1}
		first := mustLock(t)(visitor.Mutex("x").Acquire(t.Context()))
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() { in.Work(c.Mutex("x"), 1, time.Millisecond) })
		}
		synctest.Wait()
		second := acquiring(t, visitor.Mutex("x"), t.Context(), zklock.WithoutHandover())
		synctest.Wait()
		mustRelease(t, first)
		mustRelease(t, soon(t, "the other client", second))
		wg.Wait()
		// The first two places have two holders each, and the third has the others.
		if n := c.Stats().Handovers; n != goroutines-3 {
			t.Errorf("%d hand-overs among %d holders, want all but 3", n, goroutines)
		}
		for _, f := range in.Faults {
			t.Error(f)
		}
	})
}

// In one transaction a holder's node is deleted, and a node for the next local waiter is created at
// the tail. The outcome of the transaction is unknown for a while, or for ever. Whatever the
// outcome is, the client no longer passes on the old node, and a waiter of another process that
// queued in the meantime, ahead of the client's new node, gets the lock first. The local queue goes
// on, even if its first waiter gives up.
func TestRequeueWithUnknownOutcome(t *testing.T) {
	corekit.Short(t)
	for _, fault := range []faultdriver.Fault{
		faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.Hang(), faultdriver.HangReply(),
		faultdriver.LateAfter(3 * time.Millisecond), faultdriver.LateAfter(30 * time.Second),
	} {
		for _, gives := range []bool{false, true} { // whether the first local waiter gives up before the outcome is known
			t.Run(fmt.Sprint(fault, " gives up: ", gives), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { requeue(t, fault, gives) })
			})
		}
	}
}

func requeue(t *testing.T, fault faultdriver.Fault, gives bool) {
	e := memdriver.New(memdriver.WithLatency(time.Millisecond))
	counter := faultdriver.NewCounter(faultdriver.Once(faultdriver.If("a requeue", func(op faultdriver.Op) bool {
		return op.Kind == faultdriver.Multi && len(op.Paths) == 3 && strings.HasPrefix(op.Paths[0], "/zklock/x/")
	}, fault)))
	a, b := connect(t, faultdriver.Wrap(e.Connector(), counter), nil), connect(t, e.Connector(), nil)
	l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	given := make(chan error, 1)
	locals := make(chan *zklock.Lock, 3)
	go func() {
		first, err := a.Mutex("x").Acquire(ctx)
		if err == nil {
			locals <- first
		}
		given <- err
	}()
	synctest.Wait()
	for range 2 {
		go func() {
			l, err := a.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Hour))
			if err != nil {
				t.Errorf("a local waiter: %v", err)
			}
			locals <- l
		}()
	}
	remote := acquiring(t, b.Mutex("x"), t.Context())
	time.Sleep(100 * time.Millisecond) // handover_time
	mustRelease(t, l)
	if gives {
		time.Sleep(time.Millisecond / 2) // the transaction is under way
		giveUp()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("the first local waiter: %v", err)
		}
	}
	r := <-remote
	if len(locals) > 0 {
		t.Error("a local waiter got the lock before the other process, which queued earlier, or together with it")
	}
	time.Sleep(time.Minute)
	if len(locals) > 0 {
		t.Error("a local waiter got the lock while the other process holds it")
	}
	mustRelease(t, r)
	last, want := r, 3
	if gives {
		want = 2
	}
	for range want {
		next := <-locals
		if next.Token().Zxid == l.Token().Zxid || next.Token().Compare(last.Token()) <= 0 {
			t.Errorf("token %v after %v; the node that was given up had %v", next.Token(), last.Token(), l.Token())
		}
		last = next
		mustRelease(t, next)
	}
	if counter.Struck() != 1 {
		t.Errorf("%d requeues met the fault, want 1", counter.Struck())
	}
	time.Sleep(time.Minute) // for late requests and clean-ups
	if n := nodes(e); n != 0 {
		t.Errorf("left behind:\n%s", e.Dump())
	}
}

// The first local waiter has a place in the ensemble's queue. When it gives up, the next
// local waiter takes over the place with its position, and nothing is written.
func TestWaiterThatGivesUpLeavesItsPlaceToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		holder, a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(holder.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { _, err := a.Mutex("x").Acquire(ctx); failed <- err }()
		synctest.Wait()
		next := acquiring(t, a.Mutex("x"), t.Context())
		remote := acquiring(t, b.Mutex("x"), t.Context())
		d := cost(e, func() { cancel(); <-failed })
		if d.Writes() != 0 || nodes(e) != 3 {
			t.Errorf("giving up cost %+v and left %d nodes, want no write and 3 nodes", d, nodes(e))
		}
		mustRelease(t, l)
		n := <-next
		none(t, "another process, which queued later", remote)
		mustRelease(t, n)
		mustRelease(t, <-remote)
	})
}

// A holder that no quorum has answered for a while has too little of its lease left to
// hand over at once. The next waiter keeps the node, and its position in the queue, and
// waits until the lease is renewed. The number of hand-overs stays the same.
func TestHandoverNeedsAProvenLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"handover_time": "1h"})
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(5 * time.Second)
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		for time.Until(l.Until()) >= 10*time.Second/4 {
			time.Sleep(100 * time.Millisecond)
		}
		if !l.Valid() {
			t.Fatal("the lock was lost before its release")
		}
		go func() { mustRelease(t, l) }()
		none(t, "the next waiter, with too little of the lease left,", next)
		time.Sleep(100 * time.Millisecond)
		none(t, "the next waiter, with too little of the lease left,", next)
		e.Heal()
		n := <-next
		if left := time.Until(n.Until()); left < 10*time.Second/4 {
			t.Errorf("granted with %v left of the lease, want a quarter of the session timeout", left)
		}
		if st := c.Stats(); st.Handovers != 0 || st.SessionsLost != 0 || n.Token().Zxid != l.Token().Zxid {
			t.Errorf("%d hand-overs, %d sessions lost, token %v after %v", st.Handovers, st.SessionsLost, n.Token(), l.Token())
		}
		mustRelease(t, n)
	})
}

// A place is handed over only while a quarter of the lease is left. Otherwise it is
// reserved for the next waiter, which waits until a quorum has answered.
func TestHandoverNeedsALease(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"handover_time": "1m"})
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		time.Sleep(8 * time.Second)
		if left := time.Until(l.Until()); left <= 0 || left >= 2500*time.Millisecond || !l.Valid() {
			t.Fatalf("%v of the lease is left, want more than 0 and less than a quarter", left)
		}
		mustRelease(t, l)
		none(t, "the next waiter, on a lease that is nearly over,", next)
		e.Heal()
		n := <-next
		if left := time.Until(n.Until()); left < 2500*time.Millisecond {
			t.Errorf("granted with %v of the lease left, want a quarter at least", left)
		}
		if n.Token() != (zklock.Token{Zxid: l.Token().Zxid, Turn: 1}) {
			t.Errorf("token %v after %v: the next waiter did not get the same place", n.Token(), l.Token())
		}
		mustRelease(t, n)
	})
}

// A place is reserved for a waiter, and the waiter gives up. The place is not held
// again: the next waiter queues at the tail, with a token of its own, and the old node
// is removed.
func TestReservedPlaceIsNotTakenUpTwice(t *testing.T) {
	corekit.Short(t)
	for _, others := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := connect(t, e.Connector(), map[string]string{"handover_time": "1m"})
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			ctx, giveUp := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() {
				_, err := c.Mutex("x").Acquire(ctx)
				first <- err
			}()
			synctest.Wait()
			var next []chan *zklock.Lock
			for range others {
				next = append(next, acquiring(t, c.Mutex("x"), t.Context()))
			}
			e.Partition(memdriver.AroundSession(e.Sessions()[0]))
			time.Sleep(8 * time.Second)
			mustRelease(t, l) // little of the lease is left: the place is reserved
			synctest.Wait()
			giveUp()
			if err := <-first; !errors.Is(err, context.Canceled) {
				t.Errorf("the waiter that gave up: %v, want context.Canceled", err)
			}
			e.Heal()
			for _, ch := range next {
				n := <-ch
				if n.Token().Zxid <= l.Token().Zxid {
					t.Errorf("token %v after %v: the reserved place was held again", n.Token(), l.Token())
				}
				mustRelease(t, n)
			}
			time.Sleep(time.Second)
			if left := nodes(e); left != 0 {
				t.Errorf("with %d other waiters: %d nodes are left", others, left)
			}
		})
	}
}

// A place whose node an operator has deleted is not handed over. That holds even if the holder is
// releasing the lock at that moment, and so cannot be notified of the loss.
func TestDeletedNodeIsNotHandedOver(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(2*time.Second)))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"handover_time": "1m"})
		other := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		y := mustLock(t)(c.Mutex("y").Acquire(t.Context())) // keeps the session's lease renewed
		next := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(2 * time.Second) // until the node is watched
		go func() {
			if _, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll))); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		released := make(chan error, 1)
		go func() { released <- l.Release(context.Background()) }() // waits for the Txn
		synctest.Wait()
		e.Break("/zklock/x")
		first := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		<-released
		none(t, "the next waiter, in a place whose node is gone,", next)
		mustRelease(t, first)
		n := <-next
		if n.Token().Compare(first.Token()) <= 0 {
			t.Errorf("token %v after %v", n.Token(), first.Token())
		}
		mustRelease(t, n)
		mustRelease(t, y)
	})
}

// A lock on several names has a place of its own, in the queues of all its names. No
// place on one name is handed over to it, and its place is not handed over.
func TestAllIsNotHandedAPlaceOnOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		y := mustLock(t)(other.Mutex("y").Acquire(t.Context()))
		x := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		all := acquiring(t, zklock.All(c.Mutex("x"), c.Mutex("y")), t.Context())
		mustRelease(t, x)
		none(t, "All of x and y, while another client holds y,", all)
		mustRelease(t, y)
		l := <-all
		next := acquiring(t, c.Mutex("x"), t.Context())
		mustRelease(t, l)
		n := <-next
		if n.Token().Zxid == l.Token().Zxid {
			t.Errorf("token %v after All's %v: the place was handed over", n.Token(), l.Token())
		}
		mustRelease(t, n)
	})
}

// A waiter gives up after it was sent the lock, or the lead of the local queue, and before it
// has received that. It passes on to the next waiter what it was sent.
func TestWaiterThatLeavesPassesOnWhatItGot(t *testing.T) {
	defer corekit.SingleProcessor()()                      // so that the waiter that gives up runs only after the release
	for _, held := range []time.Duration{0, time.Second} { // it is handed the lock; it is made the leader
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, memdriver.New().Connector(), nil)
			for range 20 {
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				ctx, cancel := context.WithCancel(t.Context())
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					if l, err := c.Mutex("x").Acquire(ctx); err == nil {
						mustRelease(t, l)
					}
				}()
				synctest.Wait()
				next := acquiring(t, c.Mutex("x"), t.Context())
				time.Sleep(held)
				cancel()
				mustRelease(t, l)
				<-gone
				synctest.Wait()
				if len(next) != 1 {
					t.Fatalf("held for %v: the lock is free, and the next waiter did not get it", held)
				}
				mustRelease(t, <-next)
			}
		})
	}
}

// Two waiters give up at once: the leader, and the waiter that is made the leader in its
// stead. Their place in the ensemble's queue passes to the third waiter, and keeps its
// position.
func TestPlaceSurvivesTwoThatGiveUp(t *testing.T) {
	defer corekit.SingleProcessor()()
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		for range 20 {
			holder := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			var cancels []context.CancelFunc
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				cancels = append(cancels, cancel)
				go func() {
					if _, err := c.Mutex("x").Acquire(ctx); err == nil {
						t.Error("a waiter that had given up got in")
					}
				}()
				synctest.Wait()
			}
			third := acquiring(t, c.Mutex("x"), t.Context())
			place := queueOf(t, other, "x")[1]
			cancels[1]() // it wakes up second, when it is the leader already
			cancels[0]()
			synctest.Wait()
			time.Sleep(time.Second)
			if q := queueOf(t, other, "x"); len(q) != 2 || q[1] != place {
				t.Fatalf("the queue is %v, want two nodes, of which %s is the second", q, place)
			}
			mustRelease(t, holder)
			mustRelease(t, <-third)
		}
	})
}

// queueOf returns the names of a lock's queue nodes, in order.
func queueOf(t *testing.T, c *zklock.Client, name string) (queue []string) {
	t.Helper()
	contenders, err := c.Contenders(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, contender := range contenders {
		queue = append(queue, contender.Node)
	}
	return queue
}

// The place of a waiter that gives up is passed to the next waiter, even if its session
// is being replaced.
func TestPlaceSurvivesOnARetiredSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"pool_max_lifetime": "5s"})
		other, third := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := c.Mutex("x").Acquire(ctx); gone <- err }()
		synctest.Wait()
		next := acquiring(t, c.Mutex("x"), t.Context())
		late := acquiring(t, third.Mutex("x"), t.Context())
		time.Sleep(6 * time.Second)
		cancel()
		<-gone
		time.Sleep(time.Second)
		mustRelease(t, l)
		synctest.Wait()
		none(t, "a waiter of another process that queued later", late)
		mustRelease(t, soon(t, "the next waiter of the process", next))
		mustRelease(t, <-late)
	})
}
