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
