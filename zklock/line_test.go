package zklock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Readers of two hundred clients wait behind a writer. When the writer leaves, none of
// them lists the queue: each knows that the writer was the only contender ahead of it.
func TestReadersBehindAWriterDoNotList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers = 200
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		first := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, b.Mutex("x"), t.Context())
		var got []chan *zklock.Lock
		for range readers {
			got = append(got, acquiring(t, connect(t, e.Connector(), nil).RWMutex("x").Reader(), t.Context()))
		}
		mustRelease(t, first)
		writer := <-second
		var locks []*zklock.Lock
		d := cost(e, func() {
			mustRelease(t, writer)
			for _, g := range got {
				locks = append(locks, <-g)
			}
		})
		for _, l := range locks {
			mustRelease(t, l)
		}
		// Each reader also asks whether the first writer has gone, and reads its own node.
		if d.Children > 0 || d.Events > readers+1 || d.Watches > 2*readers {
			t.Errorf("the writer's departure cost %d lists, %d events and %d reads", d.Children, d.Events, d.Watches)
		}
	})
}

// A session knows which of its own nodes are gone. So two hundred waiters of one client,
// each with its own node, get the lock without a list of the queue.
func TestOwnNodesThatAreGoneAreNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers = 200
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		var got []chan *zklock.Lock
		for range writers {
			got = append(got, acquiring(t, a.Mutex("x"), t.Context(), zklock.WithoutHandover()))
		}
		d := cost(e, func() {
			for _, g := range got {
				mustRelease(t, l)
				l = <-g
			}
		})
		mustRelease(t, l)
		if d.Children > 0 {
			t.Errorf("%d waiters of one session made %d lists as they were served", writers, d.Children)
		}
	})
}

// A waiter is behind two contenders. When the nearer one goes, the waiter reads the node of
// the other one, and does not list the queue.
func TestShortLineIsWalked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var got []chan *zklock.Lock
		for range 3 {
			got = append(got, acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context()))
		}
		mustRelease(t, <-got[0])
		second := <-got[1]
		d := cost(e, func() { mustRelease(t, second); mustRelease(t, <-got[2]) })
		if d.Children > 0 {
			t.Errorf("the third in the queue listed it %d times", d.Children)
		}
	})
}

// A waiter whose node an operator removes queues again at once, while the holder still
// holds.
func TestWaiterWhoseNodeWasRemovedQueuesAgainAtOnce(t *testing.T) {
	for _, after := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
			held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			second := acquiring(t, b.Mutex("x"), t.Context())
			third := acquiring(t, c.Mutex("x"), t.Context())
			time.Sleep(after)
			queue, err := a.Contenders(t.Context(), "x")
			if err != nil || len(queue) != 3 {
				t.Fatalf("%v, %v", queue, err)
			}
			if err := a.Break(t.Context(), "x", queue[1].Node); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if n := nodes(e); n != 3 {
				t.Errorf("%d nodes in the queue a second after one was removed, which was %v old; want 3", n, after)
			}
			mustRelease(t, held)
			mustRelease(t, <-third)
			mustRelease(t, <-second)
		})
	}
}

// The same holds for a waiter for several names.
func TestWaiterForSeveralNamesQueuesAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		both := acquiring(t, zklock.All(b.Mutex("x"), b.Mutex("y")), t.Context())
		time.Sleep(10 * time.Second)
		if n := e.Break("/zklock/y"); n != 1 {
			t.Fatalf("%d nodes were broken", n)
		}
		time.Sleep(time.Second)
		if n := nodes(e); n != 3 {
			t.Errorf("%d nodes a second after one of the waiter's two was removed, want 3", n)
		}
		mustRelease(t, held)
		mustRelease(t, <-both)
	})
}

// A waiter learns of one contender's departure from a server that is up to date, and reads
// of another departure on a server that lags behind. It must not combine the two: the
// lagging server may still show the waiter's own node, which was deleted before.
func TestWalkThenReconnectToALaggingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		leader := e.Leader()
		lagging := (leader + 1) % 3
		var session atomic.Int64
		var armed atomic.Bool
		hooks := zklock.Hooks{
			Session: func(ev zklock.SessionEvent) { session.Store(ev.ID) },
			Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				if ev.Kind == "watch" && armed.Swap(false) {
					e.Partition(memdriver.BetweenSession(session.Load(), leader).Reset())
				}
				return ctx, nil
			},
		}
		e.Partition(memdriver.AroundClients(lagging).Reset())
		first, second := connect(t, e.Connector(leader), nil), connect(t, e.Connector(leader), nil)
		waiter := connect(t, e.Connector(leader, lagging), nil, zklock.WithHooks(hooks))
		behind := connect(t, e.Connector(leader), nil)
		for _, c := range []*zklock.Client{first, second, waiter, behind} {
			mustRelease(t, mustLock(t)(c.Mutex("first").Acquire(t.Context())))
		}
		time.Sleep(time.Second)
		e.Heal()

		held := mustLock(t)(first.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, second.Mutex("x"), t.Context())
		waits := acquiring(t, waiter.Mutex("x"), t.Context())
		last := acquiring(t, behind.Mutex("x"), t.Context())
		queue, err := first.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 4 {
			t.Fatalf("%v, %v", queue, err)
		}
		mustRelease(t, held)
		held = <-next
		memcontrol.Of(e).Lag(lagging, 3*time.Second)
		armed.Store(true)
		if err := memcontrol.Of(e).Delete("/zklock/x/" + queue[2].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, held)
		holder := <-last
		time.Sleep(6 * time.Second)
		if armed.Load() {
			t.Error("the connection was not cut")
		}
		none(t, "the waiter whose node is gone, while another client holds,", waits)
		if !holder.Valid() {
			t.Error("the holder's lock is not valid")
		}
		mustRelease(t, holder)
		mustRelease(t, <-waits)
	})
}

// A reader of the same session waits behind a writer and watches the writer's node. The
// event of that node's deletion is lost. The writer still reads its node before it holds.
func TestOwnNodeIsReadThoughAFollowerWatchesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		lost := faultdriver.Nth(2, about(faultdriver.On(faultdriver.Watch, faultdriver.LoseEvent())))
		a, b, c := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), lost), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		writer := acquiring(t, b.Mutex("x"), t.Context(), zklock.WithoutHandover())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var follower sync.WaitGroup
		follower.Go(func() {
			if l, err := b.RWMutex("x").Reader().Acquire(ctx, zklock.WithoutHandover()); err == nil {
				_ = l.Release(context.Background())
			}
		})
		synctest.Wait()
		third := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		queue, err := a.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 4 {
			t.Fatalf("%v, %v", queue, err)
		}
		if err := a.Break(t.Context(), "x", queue[1].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, held)
		reader := <-third
		none(t, "the writer whose node is gone, while a reader holds,", writer)
		mustRelease(t, reader)
		cancel()
		follower.Wait()
		mustRelease(t, <-writer)
	})
}

// Two hundred waiting clients get the lock one after the other. A grant costs at most one
// list and two reads. If each waiter instead read every contender that was ahead of it when
// it came, that would be twenty thousand reads in all.
func TestDrainOfManyClientsCostsOneListAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 200
		e := memdriver.New()
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		var got []chan *zklock.Lock
		for range clients {
			got = append(got, acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context()))
		}
		d := cost(e, func() {
			for _, g := range got {
				mustRelease(t, held)
				held = <-g
			}
		})
		mustRelease(t, held)
		if d.Children > clients || d.Watches+d.Gets > 2*clients || d.Events > 2*clients {
			t.Errorf("%d grants cost %d lists, %d reads and %d events", clients, d.Children, d.Watches+d.Gets, d.Events)
		}
	})
}
