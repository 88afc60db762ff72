package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// slowLists returns a client and a semaphore that it waits for, because another client holds
// its only permit. The faults strike the client's first lists.
func slowLists(t *testing.T, faults ...faultdriver.Fault) (*memdriver.Ensemble, *zklock.Client, *zklock.Semaphore, *zklock.Lock) {
	e := memdriver.New(memdriver.WithLatency(time.Millisecond))
	held := mustLock(t)(connect(t, e.Connector(), nil).Semaphore("x", 1).Acquire(t.Context()))
	var mu sync.Mutex
	c := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind != faultdriver.Children || len(faults) == 0 {
			return faultdriver.None()
		}
		fault := faults[0]
		faults = faults[1:]
		return fault
	}), nil)
	return e, c, c.Semaphore("x", 1), held
}

// useOnce acquires and releases a lock.
func useOnce(t *testing.T, a zklock.Acquirer, opts ...zklock.AcquireOption) {
	l, err := a.Acquire(t.Context(), opts...)
	if err == nil {
		err = l.Release(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
}

// Waiters of one session that need a list of a queue while one is under way share the next
// one. They do not use the one that is under way, which may have begun before their own nodes
// were created: each finds its node at once.
func TestWaitersShareLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c, s, held := slowLists(t, faultdriver.DelayReply(time.Second))
		const waiters = 200
		var released sync.WaitGroup
		d := cost(e, func() {
			for range waiters {
				released.Go(func() { useOnce(t, s, zklock.WithCandidacy()) })
			}
			time.Sleep(3 * time.Second)
		})
		if waiting := c.Stats().Waiting; waiting != waiters {
			t.Fatalf("%d of %d wait", waiting, waiters)
		}
		if d.Children != 2 || nodes(e) != waiters+1 || d.Deletes > 0 {
			t.Errorf("%d waiters needed %d lists, want one that is slow and one for all that came meanwhile; %d deletes, %d nodes", waiters, d.Children, d.Deletes, nodes(e))
		}
		mustRelease(t, held)
		released.Wait()
	})
}

// A waiter that leaves takes no list from those that share it, whether it lists for all of
// them or waits for the list.
func TestWaiterThatLeavesTakesNoListAlong(t *testing.T) {
	corekit.Short(t)
	for range 5 { // any of them may be the one that lists
		synctest.Test(t, func(t *testing.T) {
			_, c, s, held := slowLists(t, faultdriver.DelayReply(100*time.Millisecond), faultdriver.HangReply())
			ctx, leave := context.WithCancel(t.Context())
			var left, released sync.WaitGroup
			for range 10 {
				left.Go(func() {
					if _, err := s.Acquire(ctx, zklock.WithCandidacy()); !errors.Is(err, context.Canceled) {
						t.Errorf("a waiter that left: %v", err)
					}
				})
			}
			stay := c.Semaphore("x", 1)
			time.Sleep(10 * time.Millisecond)
			released.Go(func() { useOnce(t, stay, zklock.WithCandidacy()) })
			time.Sleep(time.Second)
			leave()
			left.Wait()
			time.Sleep(time.Minute) // if the one that stays lists, it waits in vain for a while
			if waiting := c.Stats().Waiting; waiting != 1 {
				t.Errorf("%d wait after the others have left, want the one that stays to know its place", waiting)
			}
			mustRelease(t, held)
			released.Wait()
		})
	}
}

// A list without an answer, whose only waiter has left, holds up no later caller: neither the list that a
// waiter makes itself, nor the one that follows it.
func TestListOfAWaiterThatLeftHoldsUpNoOther(t *testing.T) {
	for _, faults := range [][]faultdriver.Fault{{faultdriver.HangReply()}, {faultdriver.DelayReply(20 * time.Millisecond), faultdriver.HangReply()}} {
		synctest.Test(t, func(t *testing.T) {
			_, c, s, held := slowLists(t, faults...)
			ctx, leave := context.WithCancel(t.Context())
			var waiters sync.WaitGroup
			for range faults {
				waiters.Go(func() {
					if _, err := s.Acquire(ctx, zklock.WithCandidacy()); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
			leave()
			waiters.Wait()
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := c.Semaphore("x", 1).TryAcquire(ctx)
			if d := time.Since(began); d > time.Second || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v, want at once that the lock is taken", d, err)
			}
			mustRelease(t, held)
		})
	}
}

// Callers that gave up do not hold up the waiter whose turn has come, although the server is slow
// to list their queues.
func TestListsOfCallersThatLeftHoldUpNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		many := corekit.Crowd(2000)
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		slow := faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Children, faultdriver.DelayReply(time.Second)))
		b := connect(t, slow, nil)
		l := mustLock(t)(a.Mutex("w").Acquire(t.Context()))
		next := acquiring(t, b.Mutex("w"), t.Context())
		time.Sleep(10 * time.Second)
		for i := range many { // b knows the znodes then
			mustRelease(t, mustLock(t)(b.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())))
			mustLock(t)(a.Mutex(fmt.Sprint("n", i)).Acquire(t.Context()))
		}
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := b.Mutex(fmt.Sprint("n", i)).Acquire(ctx); err == nil {
					t.Error("acquired a lock that another client holds")
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		began := time.Now()
		mustRelease(t, l)
		mustRelease(t, <-next)
		d := time.Since(began)
		t.Logf("the next holder has the lock %v after the release", d)
		if d > 2*time.Second {
			t.Errorf("the lists of callers that have left held up a grant for %v", d)
		}
	})
}

// tooLong makes each list of the queue of x fail, as one does that no driver can read.
func tooLong() faultdriver.Injector {
	fail := faultdriver.Fail(driver.ErrReplyTooLarge)
	return faultdriver.Path("/zklock/x", faultdriver.Any(faultdriver.On(faultdriver.Children, fail), faultdriver.On(faultdriver.WatchChildren, fail)))
}

// Nothing can be learned of a queue that is too long for one list. Every call says so at once,
// and leaves nothing behind. The holder and other names do not notice.
func TestQueueThatIsTooLongForAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.NewToggle(tooLong())
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		other := mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		faults.On()
		wants := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, driver.ErrReplyTooLarge) || !strings.Contains(err.Error(), "/zklock/x") || strings.Count(err.Error(), "one reply can list") != 1 {
				t.Errorf("%s: %v, want ErrReplyTooLarge and the path", what, err)
			}
		}
		began := time.Now()
		_, err := a.Mutex("x").Acquire(t.Context())
		wants("Acquire", err)
		_, err = a.Mutex("x").TryAcquire(t.Context())
		wants("TryAcquire", err)
		_, err = zklock.All(a.Mutex("w"), a.Mutex("x")).Acquire(t.Context())
		wants("All", err)
		_, err = a.Contenders(t.Context(), "x")
		wants("Contenders", err)
		for _, err := range a.Watch(t.Context(), "x") {
			wants("Watch", err)
			break
		}
		synctest.Wait() // what All had of w is removed in the background
		names := ""
		for info, err := range a.Locks(t.Context(), "") {
			if names += info.Name; info.Name == "x" {
				wants("Locks", err)
			} else if err != nil {
				t.Errorf("Locks: %s: %v", info.Name, err)
			}
		}
		if names != "xy" {
			t.Errorf("Locks returned the names %q, want x and y", names)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the calls took %v", d)
		}
		synctest.Wait()
		if n := nodes(e); n != 2 {
			t.Errorf("%d nodes, want those of the two holders:\n%s", n, e.Dump())
		}
		if !held.Valid() || held.Verify(t.Context()) != nil {
			t.Error("the holder has lost the lock")
		}
		faults.Off()
		next := acquiring(t, a.Mutex("x"), t.Context())
		mustRelease(t, held)
		mustRelease(t, <-next)
		mustRelease(t, other)
	})
}

// The reply to a create is lost, and the list that would show the node is too long. Its client
// lists again until it can delete the node.
func TestLostReplyAndATooLongListLeaveNoOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		lost := faultdriver.NewCounter(faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply()))))
		faults := faultdriver.Any(lost, faultdriver.First(12, tooLong())) // so many that lookouts have given up before
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		if _, err := a.Mutex("x").Acquire(t.Context()); !errors.Is(err, driver.ErrReplyTooLarge) || lost.Struck() != 1 {
			t.Errorf("acquire: %v, want ErrReplyTooLarge after one lost reply", err)
		}
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes, want the one of the lost reply:\n%s", n, e.Dump())
		}
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context(), zklock.WithWait(5*time.Minute))))
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

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
// lagging server may still show the waiter's own node, which was deleted before. A reader walks; a writer would list.
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

		held := mustLock(t)(first.RWMutex("x").Writer().Acquire(t.Context()))
		next := acquiring(t, second.RWMutex("x").Writer(), t.Context())
		waits := acquiring(t, waiter.RWMutex("x").Reader(), t.Context())
		last := acquiring(t, behind.RWMutex("x").Writer(), t.Context())
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
		writer := acquiring(t, b.Mutex("x"), t.Context())
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

func TestCancelledWaitsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		acquirers := []zklock.Acquirer{b.Mutex("x"), b.RWMutex("x").Reader(), a.Mutex("x"), zklock.All(b.Mutex("x"), b.Mutex("y"))}
		round := func(n int) {
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7+1)*time.Millisecond)
					defer cancel()
					if _, err := acquirers[i%len(acquirers)].Acquire(ctx); !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
						t.Errorf("a cancelled wait: %v", err)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		measure := func() (goroutines, watches int, heap uint64) {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), memcontrol.Of(e).WatchCount(), m.HeapAlloc
		}
		round(100)
		g, w, h := measure()
		for range corekit.Crowd(100) {
			round(100)
		}
		g2, w2, h2 := measure()
		if g2 > g+5 || w2 > w+2 || h2 > h+8<<20 {
			t.Errorf("%d goroutines, %d watches, %d bytes became %d, %d, %d", g, w, h, g2, w2, h2)
		}
		if n := nodes(e); n != 1 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
		mustRelease(t, l)
		t.Logf("%d goroutines, %d watches, %d bytes became %d, %d, %d", g, w, h, g2, w2, h2)
	})
}

// TestWatchThatSurvivedAReconnectWakesAtOnce: after a reconnect a waiter reads the nodes
// that it watches again, within a sixth of the session timeout. If a watch fires before
// that, it wakes the waiter at once.
func TestWatchThatSurvivedAReconnectWakesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		got := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		for _, id := range e.Sessions() {
			e.KillConnection(id)
		}
		time.Sleep(100 * time.Millisecond) // all have connected again
		mustRelease(t, held)
		released := time.Now()
		next := <-got
		if d := time.Since(released); d > 200*time.Millisecond {
			t.Errorf("the waiter got in %v after the release", d)
		}
		mustRelease(t, next)
	})
}

// Waiters of one session that wait for the same node share one watch, armed by one read. The first of them soon
// watches its own node, too: the event that the only one ahead is gone grants its place then.
func TestWaitersOfASessionShareAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		const waiters = 20
		got := make(chan *zklock.Lock)
		asked := cost(e, func() {
			for range waiters {
				go func() { got <- mustLock(t)(b.RWMutex("x").Reader().Acquire(t.Context(), zklock.WithoutHandover())) }()
			}
			time.Sleep(100 * time.Millisecond) // later all watch their own nodes
		})
		if asked.Watches != 2 || nodes(e) != 1+waiters {
			t.Errorf("%d watches were asked for by %d nodes, want two", asked.Watches, nodes(e)-1)
		}
		mustRelease(t, held)
		for range waiters {
			mustRelease(t, <-got)
		}
	})
}
