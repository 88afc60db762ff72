package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestRoundTripsOfALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		var l *zklock.Lock
		acquire := func(a zklock.Acquirer) func() {
			return func() { l = mustLock(t)(a.Acquire(t.Context())) }
		}
		release := func() { mustRelease(t, l) }
		wantCost(t, "a new name", cost(e, acquire(c.Mutex("a"))), memcontrol.Ops{Multis: 1, MultiOps: 3})
		wantCost(t, "a release", cost(e, release), memcontrol.Ops{Multis: 1, MultiOps: 1})
		wantCost(t, "a known name", cost(e, acquire(c.Mutex("a"))), memcontrol.Ops{Multis: 1, MultiOps: 2})
		release()
		wantCost(t, "a reader of a known name", cost(e, acquire(c.RWMutex("a").Reader())), memcontrol.Ops{Multis: 1, MultiOps: 2})
		first := l
		wantCost(t, "a reader that joins", cost(e, acquire(c.RWMutex("a").Reader())), memcontrol.Ops{})
		wantCost(t, "the joined reader's release", cost(e, release), memcontrol.Ops{})
		wantCost(t, "the first reader's release", cost(e, func() { mustRelease(t, first) }), memcontrol.Ops{Multis: 1, MultiOps: 1})
		for range 10 {
			wantCost(t, "a name in use", cost(e, acquire(c.Mutex("a"))), memcontrol.Ops{Multis: 1, MultiOps: 2})
			wantCost(t, "its release", cost(e, release), memcontrol.Ops{Multis: 1, MultiOps: 1})
		}

		var eight []zklock.Acquirer
		for i := range 8 {
			eight = append(eight, c.Mutex(fmt.Sprint("n", i)))
		}
		all := zklock.All(eight...)
		acquire(all)()
		release()
		wantCost(t, "eight known names", cost(e, acquire(all)), memcontrol.Ops{Multis: 1, MultiOps: 16})
		wantCost(t, "the release of eight names", cost(e, release), memcontrol.Ops{Multis: 1, MultiOps: 8})
	})
}

func TestHandoverCostsNothingAndRequeueOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		m := c.Mutex("a")
		l := mustLock(t)(m.Acquire(t.Context()))
		next := make(chan *zklock.Lock)
		queue := func() {
			go func() { next <- mustLock(t)(m.Acquire(t.Context())) }()
			synctest.Wait()
		}
		queue()
		wantCost(t, "a hand-over", cost(e, func() { mustRelease(t, l); l = <-next }), memcontrol.Ops{})
		queue()
		time.Sleep(100 * time.Millisecond)
		wantCost(t, "a requeue", cost(e, func() { mustRelease(t, l); l = <-next }), memcontrol.Ops{Multis: 1, MultiOps: 3})
		mustRelease(t, l)
	})
}

func TestTriesDoNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("a").Acquire(t.Context()))
		if err := b.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		refused := func(c *zklock.Client) func() {
			return func() {
				if _, err := c.Mutex("a").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("TryAcquire of a held lock: %v", err)
				}
			}
		}
		wantCost(t, "a try, held remotely", cost(e, refused(b)), memcontrol.Ops{Children: 1})
		wantCost(t, "a try, held locally", cost(e, refused(a)), memcontrol.Ops{})
		mustRelease(t, l)
	})
}

func TestReleaseWakesOneOfFifty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		holder := connect(t, e.Connector(), nil)
		l := mustLock(t)(holder.Mutex("a").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan *zklock.Lock, 50)
		var wg sync.WaitGroup
		for range 50 {
			c := connect(t, e.Connector(), nil)
			wg.Go(func() {
				if l, err := c.Mutex("a").Acquire(ctx); err == nil {
					got <- l
				}
			})
		}
		if d := cost(e, func() { mustRelease(t, l); l = <-got }); d.Events != 1 {
			t.Errorf("a release sent %d watch events, want 1", d.Events)
		}
		cancel()
		wg.Wait()
		mustRelease(t, l)
	})
}
