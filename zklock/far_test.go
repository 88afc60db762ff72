package zklock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// farTrip is a round trip to servers that are further away than work takes. A turn takes two of them, and less than a third one more if a session
// that has rested was asking for its lease already.
const farTrip = 50 * time.Millisecond

// farPermits returns so many holders of as many permits and so many waiters behind them, each of a client of its own.
func farPermits(t *testing.T, e *memdriver.Ensemble, holders, waiters int) (held []*zklock.Lock, waiting []chan *zklock.Lock) {
	t.Helper()
	want := func() zklock.Acquirer {
		return connect(t, e.Connector(), nil).Semaphore("s", holders)
	}
	for range holders {
		held = append(held, mustLock(t)(want().Acquire(t.Context())))
	}
	for range waiters {
		waiting = append(waiting, acquiring(t, want(), t.Context()))
		time.Sleep(time.Second) // until it sleeps
	}
	return held, waiting
}

// Far from the servers, the next in line get the permits that come back at one instant two round trips later, all of them,
// and not one after another. Each of them looks once, when its turn has come. A permit that is back soon is not marked.
func TestPermitsFarAwayAreGrantedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const permits = 4
		e := memdriver.New(memdriver.WithLatency(farTrip / 2))
		held, waiting := farPermits(t, e, permits, permits)
		began := time.Now()
		d := cost(e, func() {
			for _, l := range held {
				go mustRelease(t, l)
			}
			held = nil
			for _, got := range waiting {
				held = append(held, <-got)
			}
			if took := time.Since(began); took >= 3*farTrip {
				t.Errorf("the last of %d was granted after %s, want %s", permits, took, 2*farTrip)
			}
		})
		if d.Children != permits {
			t.Errorf("%+v for %d permits, want as many lists", d, permits)
		}
		time.Sleep(farTrip / 2)
		d = cost(e, func() {
			for _, l := range held {
				go mustRelease(t, l)
			}
			time.Sleep(time.Second)
		})
		if d.Sets != 0 {
			t.Errorf("%+v, want no marks of permits that are back", d)
		}
	})
}

// One that counts departures reads a holder's node again when that is marked, instead of the queue, and notices its departure then.
func TestMarkedPermitIsWatchedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(farTrip / 2))
		held, waiting := farPermits(t, e, 2, 2)
		var first *zklock.Lock
		d := cost(e, func() {
			mustRelease(t, held[0])
			first = <-waiting[0]
			time.Sleep(time.Second) // until it is marked
		})
		if d.Sets != 1 || d.Children != 1 {
			t.Errorf("a permit that is handed on and marked cost %+v, want one list", d)
		}
		none(t, "a third holder of two permits", waiting[1])
		began := time.Now()
		go mustRelease(t, first)
		last := <-waiting[1]
		if took := time.Since(began); took >= 3*farTrip {
			t.Errorf("the next was granted after %s, want %s", took, 2*farTrip)
		}
		mustRelease(t, last)
		mustRelease(t, held[1])
	})
}

// An All that waits for both names of another one lists both together when that leaves, and is granted by that.
func TestAllIsListedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(farTrip / 2))
		all := func() zklock.Acquirer {
			c := connect(t, e.Connector(), nil)
			return zklock.All(c.Mutex("x"), c.Mutex("y"), c.Mutex("z"))
		}
		l := mustLock(t)(all().Acquire(t.Context()))
		var waiting []chan *zklock.Lock
		for range 3 {
			waiting = append(waiting, acquiring(t, all(), t.Context()))
			time.Sleep(10 * time.Second)
		}
		for i, got := range waiting {
			began := time.Now()
			d := cost(e, func() {
				go mustRelease(t, l)
				l = <-got
			})
			if took := time.Since(began); took >= 3*farTrip || d.Gets != 0 {
				t.Errorf("the All number %d was granted after %s, %+v; want %s, or a little more if a Sync was under way, and no read of its nodes", i, took, d, 2*farTrip)
			}
			time.Sleep(10 * time.Second)
		}
		mustRelease(t, l)
	})
}

// An All whose turn has come on its first name waits for the second one. Meanwhile its first node is deleted, and the one
// behind holds that name. The lists from before the wait grant nothing.
func TestAllWhoseFirstNodeGoesDuringTheSecondWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		var held []*zklock.Lock
		for _, name := range []string{"x", "y"} {
			held = append(held, mustLock(t)(a.Mutex(name).Acquire(t.Context())))
		}
		between := acquiring(t, d.Mutex("y"), t.Context())
		both := acquiring(t, zklock.All(b.Mutex("x"), b.Mutex("y")), t.Context())
		mustRelease(t, held[0])
		synctest.Wait() // now it waits for y
		queue, _ := a.Contenders(t.Context(), "x")
		if err := a.Break(t.Context(), "x", queue[0].Node); err != nil {
			t.Fatal(err)
		}
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		mustRelease(t, held[1])
		mustRelease(t, <-between) // two have left, so it lists y
		none(t, "an All one of whose nodes was deleted", both)
		mustRelease(t, l)
		got := soon(t, "the All", both)
		if !got.Valid() {
			t.Error("the All is lost")
		}
		mustRelease(t, got)
	})
}

// Many waiters of one client ask for a node ahead that has just left. One read answers all of them.
func TestNodeThatIsGoneIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		writer := mustLock(t)(connect(t, e.Connector(), nil).RWMutex("r").Writer().Acquire(t.Context()))
		var once sync.Once
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "watch" {
				once.Do(func() {
					time.Sleep(time.Second) // until all ask for that node
					mustRelease(t, writer)
				})
			}
			return ctx, nil
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		var readers []chan *zklock.Lock
		d := cost(e, func() {
			for range 20 {
				readers = append(readers, acquiring(t, c.RWMutex("r").Reader(), t.Context(), zklock.WithoutHandover()))
			}
			for _, got := range readers {
				mustRelease(t, <-got)
			}
		})
		if d.Watches != 1 {
			t.Errorf("20 readers behind a writer that has left: %+v, want one read of its node", d)
		}
	})
}
