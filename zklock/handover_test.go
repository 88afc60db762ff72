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
			t.Errorf("handed: %v after %v", h.Token(), l.Token())
		}
		mustRelease(t, h)
		o := <-own
		if o.Token().Zxid == h.Token().Zxid || o.Token().Compare(h.Token()) <= 0 || o.Token().Turn != 0 {
			t.Errorf("own: %v after %v", o.Token(), h.Token())
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
		take := func(c *zklock.Client, who string) {
			go func() {
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				order = append(order, who)
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
			t.Fatal(order)
		}
		if order[3] != "b" {
			t.Errorf("handover_limit=2: %v", order)
		}
	})
}

// handover_limit counts from when another contender is known; handover_time
// counts always.
func TestHandoverIsUnlimitedWhileNobodyElseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		in := &inside{room: 1}
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() { in.work(c.Mutex("x"), 1, time.Millisecond) })
		}
		wg.Wait()
		if n := c.Stats().Handovers; n != 59 {
			t.Errorf("%d hand-overs among 60 within handover_time", n)
		}
		before := c.Stats().Handovers
		for range 10 {
			wg.Go(func() { in.work(c.Mutex("x"), 1, 40*time.Millisecond) })
		}
		wg.Wait()
		// Granted, passed on 40ms and 80ms later, given up after 120ms; and so on.
		if n := c.Stats().Handovers - before; n != 6 {
			t.Errorf("%d hand-overs among 10 that hold for 40ms each, want 2 for every 3", n)
		}
		for _, f := range in.faults {
			t.Error(f)
		}
	})
}

// A holder gives up its node and the next local waiter queues again, in one
// transaction whose outcome is not known for a while, if ever. Whatever became of
// it, the old node is not passed on any more; who queued meanwhile in another
// process gets in first; and the local queue goes on, also without its first.
func TestRequeueWithUnknownOutcome(t *testing.T) {
	for _, fault := range []faultdriver.Fault{
		faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.Hang(), faultdriver.HangReply(),
		faultdriver.LateAfter(3 * time.Millisecond), faultdriver.LateAfter(30 * time.Second),
	} {
		for _, gives := range []bool{false, true} { // the first local waiter gives up meanwhile
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
		t.Error("a local waiter got in before one that queued earlier, or beside it")
	}
	time.Sleep(time.Minute)
	if len(locals) > 0 {
		t.Error("a local waiter got in beside the other process")
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
		t.Errorf("%d requeues were struck", counter.Struck())
	}
	time.Sleep(time.Minute) // late requests, sweeps
	if n := nodes(e); n != 0 {
		t.Errorf("left behind:\n%s", e.Dump())
	}
}

// The first local waiter has a place in the ensemble's queue. When it gives up,
// the next one takes that over, with its position, and nothing is written.
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
			t.Errorf("giving up cost %+v, %d nodes", d, nodes(e))
		}
		mustRelease(t, l)
		n := <-next
		none(t, "another process, which queued later", remote)
		mustRelease(t, n)
		mustRelease(t, <-remote)
	})
}

// A holder that has heard of no quorum for a while has too little lease to pass
// on at once. The next one waits until there is more, with the same node: it is no
// hand-over that costs nothing, and loses no place.
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
			t.Fatal("lost already")
		}
		go func() { mustRelease(t, l) }()
		none(t, "the next, on the rest of a lease", next)
		time.Sleep(100 * time.Millisecond)
		none(t, "the next, on the rest of a lease", next)
		e.Heal()
		n := <-next
		if left := time.Until(n.Until()); left < 10*time.Second/4 {
			t.Errorf("granted with %v of lease", left)
		}
		if st := c.Stats(); st.Handovers != 0 || st.SessionsLost != 0 || n.Token().Zxid != l.Token().Zxid {
			t.Errorf("%d hand-overs, %d sessions lost, token %v after %v", st.Handovers, st.SessionsLost, n.Token(), l.Token())
		}
		mustRelease(t, n)
	})
}
