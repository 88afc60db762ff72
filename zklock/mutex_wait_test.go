package zklock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// operating returns hooks that call f once, before the first operation of a kind.
func operating(kind string, f func()) zklock.Hooks {
	var once sync.Once
	return zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
		if ev.Kind == kind {
			once.Do(f)
		}
		return ctx, nil
	}}
}

// The order of the queue is that of the sequence numbers at the end of the nodes' names,
// not that of the GUIDs, which begin with the session's id.
func TestGrantsComeInTheOrderOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var clients []*zklock.Client
		for range 4 {
			c := connect(t, e.Connector(), nil)
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
		}
		if !slices.IsSorted(e.Sessions()) {
			t.Fatal("session ids do not rise")
		}
		slices.Reverse(clients) // the newest session first
		l := mustLock(t)(clients[0].Mutex("x").Acquire(t.Context()))
		var waiting []chan *zklock.Lock
		for _, c := range clients[1:] {
			waiting = append(waiting, acquiring(t, c.Mutex("x"), t.Context()))
		}
		for i := range waiting {
			for _, w := range waiting[i:] {
				none(t, "a waiter, while another client holds,", w)
			}
			mustRelease(t, l)
			synctest.Wait()
			if len(waiting[i]) != 1 {
				t.Fatalf("the lock was not granted to waiter %d, which is the next in the queue:\n%s", i, e.Dump())
			}
			l = <-waiting[i]
		}
		mustRelease(t, l)
	})
}

// A waiter lists the queue, and the node that it is going to watch is granted a permit
// and marked before the watch is armed. The waiter is the first in line then, and has to
// watch all holders.
func TestPermitMarkedBeforeItIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		get := func(opts ...zklock.Option) zklock.Acquirer {
			return connect(t, e.Connector(), nil, opts...).Semaphore("x", 2)
		}
		first := mustLock(t)(get().Acquire(t.Context()))
		second := mustLock(t)(get().Acquire(t.Context()))
		third := acquiring(t, get(), t.Context())
		var l *zklock.Lock
		fourth := acquiring(t, get(zklock.WithHooks(operating("watch", func() {
			mustRelease(t, first)
			l = <-third
			time.Sleep(time.Second) // until its mark is written
		}))), t.Context())
		time.Sleep(2 * time.Second)
		none(t, "the fourth, while two hold,", fourth)
		mustRelease(t, second)
		synctest.Wait()
		if len(fourth) != 1 {
			t.Fatalf("a permit is free, and the first waiter in line was not woken:\n%s", e.Dump())
		}
		mustRelease(t, <-fourth)
		mustRelease(t, l)
	})
}

// Another session deletes a waiter's node and creates one with the same name. A waiter that is next in line does not
// take that node for its own. One further back may be granted by a list, which shows no owners: it loses the lock
// when the guard of its nodes has read them, which begins to watch the nodes of a hold that lasts.
func TestNodePutInPlaceOfOursIsNotOurs(t *testing.T) {
	for ahead := 1; ahead <= 4; ahead++ {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			s := plain(t, e)
			var holders []chan *zklock.Lock
			for range ahead {
				holders = append(holders, acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context()))
			}
			b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
			ours, behind := acquiring(t, b.Mutex("x"), t.Context()), acquiring(t, c.Mutex("x"), t.Context())
			queue, err := b.Contenders(t.Context(), "x")
			if err != nil || len(queue) != ahead+2 {
				t.Fatalf("contenders: %v, %v", queue, err)
			}
			path := "/zklock/x/" + queue[ahead].Node
			if _, err := s.Multi(t.Context(), []driver.Op{
				driver.DeleteOp(path, driver.AnyVersion),
				driver.CreateOp(path, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)),
			}); err != nil {
				t.Fatal(err)
			}
			for _, h := range holders {
				mustRelease(t, <-h)
			}
			synctest.Wait()
			granted := len(ours) == 1
			if granted {
				l := <-ours
				time.Sleep(time.Minute) // until it is guarded
				if l.Valid() {
					t.Errorf("%d ahead: valid, with a node of another session", ahead)
				}
				_ = l.Release(t.Context()) // it is lost
			}
			if err := s.Close(t.Context()); err != nil { // its node goes
				t.Fatal(err)
			}
			mustRelease(t, <-behind)
			if !granted {
				l := <-ours
				if err := l.Verify(t.Context()); err != nil {
					t.Errorf("Verify: %v", err)
				}
				mustRelease(t, l)
			}
		})
	}
}

// A waiter sees that no contender is ahead, and then reads its own node. If the connection
// changes between the two, the waiter lists the queue again, on the new connection.
func TestGrantIsSeenOnOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		var mu sync.Mutex
		var kinds []string // since the reconnect
		released, cut := false, false
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			mu.Lock()
			defer mu.Unlock()
			if cut {
				kinds = append(kinds, ev.Kind)
			}
			if released && !cut && ev.Kind == "watch" { // of our own node
				cut = true
				e.KillConnection(ev.Session)
			}
			return ctx, nil
		}}
		b := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		got := acquiring(t, b.Mutex("x"), t.Context())
		mu.Lock()
		released = true
		mu.Unlock()
		mustRelease(t, l)
		l = <-got
		mu.Lock()
		if !cut || !slices.Contains(kinds, "list") {
			t.Errorf("the connection was cut: %v; the operations since are %v, want a list among them", cut, kinds)
		}
		mu.Unlock()
		mustRelease(t, l)
	})
}

// A watch that got lost with its connection is armed again on the next one.
func TestWaitSurvivesAWatchLostInAReconnect(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		holder := e.Sessions()[0]
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Watch, faultdriver.LoseEvent())))
		b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		got := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second) // until it watches its own node too
		for _, id := range e.Sessions() {
			if id != holder {
				e.KillConnection(id)
			}
		}
		time.Sleep(3 * time.Second) // the node ahead is read again within a sixth of the session timeout
		mustRelease(t, l)
		synctest.Wait()
		if len(got) != 1 {
			t.Fatal("the lock is free, and the waiter was not woken")
		}
		mustRelease(t, <-got)
	})
}

// Concurrent tries get some of the permits of a semaphore, and never more than it has.
func TestTriesTakeNoMorePermitsThanThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		held := make(chan *zklock.Lock, 20)
		var wg sync.WaitGroup
		for range 5 {
			c := connect(t, e.Connector(), nil)
			for range 4 {
				wg.Go(func() {
					l, err := c.Semaphore("x", 3).TryAcquire(t.Context())
					if err == nil {
						held <- l
					} else if !errors.Is(err, zklock.ErrNotAcquired) {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(time.Second)
		if n := len(held); n == 0 || n > 3 || nodes(e) != n {
			t.Errorf("%d tries hold one of 3 permits, want between 1 and 3, with a node each:\n%s", n, e.Dump())
		}
		for range len(held) {
			mustRelease(t, <-held)
		}
	})
}

// A waiter's session expires. The waiter queues again, at the tail.
func TestExpiryWhileQueuedGoesToTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		known := e.Sessions()
		second := acquiring(t, b.Mutex("x"), t.Context())
		ids := e.Sessions()
		third := acquiring(t, c.Mutex("x"), t.Context())
		for _, id := range ids {
			if id != known[0] {
				e.Expire(id)
			}
		}
		time.Sleep(5 * time.Second)
		none(t, "the second", second)
		none(t, "the third", third)
		if n := nodes(e); n != 3 {
			t.Errorf("%d nodes, want 3:\n%s", n, e.Dump())
		}
		mustRelease(t, l)
		l = <-third
		none(t, "the second, while the third holds,", second)
		mustRelease(t, l)
		mustRelease(t, <-second)
	})
}

// An operator deletes a waiter's node. The waiter queues again.
func TestBrokenWaitersQueueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithLabel("first")))
		second := acquiring(t, b.Mutex("x"), t.Context(), zklock.WithLabel("second"))
		third := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithLabel("third"))
		queue, err := a.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 3 || !queue[0].Held || queue[1].Held || queue[2].Held || queue[1].Label != "second" || queue[2].Foreign {
			t.Fatalf("contenders: %+v, %v", queue, err)
		}
		if err := a.Break(t.Context(), "x", queue[1].Node); err != nil {
			t.Fatal(err)
		}
		if err := a.Break(t.Context(), "x", queue[1].Node); !errors.Is(err, driver.ErrNoNode) {
			t.Errorf("a second Break of the same node: %v, want ErrNoNode", err)
		}
		none(t, "the second", second)
		none(t, "the third", third)
		mustRelease(t, l)
		var first, last chan *zklock.Lock
		synctest.Wait()
		if len(second) == 1 {
			first, last = second, third
		} else {
			first, last = third, second
		}
		l = <-first
		none(t, "the other", last)
		mustRelease(t, l)
		mustRelease(t, <-last)
	})
}

func TestSequenceEndIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		for _, next := range []int32{1<<31 - 1<<20, 1<<31 - 1} {
			if err := memcontrol.Of(e).SetSequence("/zklock/x", next); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
				t.Errorf("Acquire with sequence number %d: %v, want ErrConflict", next, err)
			}
			synctest.Wait()
			if nodes(e) != 0 {
				t.Errorf("left behind:\n%s", e.Dump())
			}
		}
		if err := memcontrol.Of(e).SetSequence("/zklock/x", 1<<31-1<<20-1); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
	})
}

func TestMiddleWaiterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { _, err := b.Mutex("x").Acquire(ctx); failed <- err }()
		synctest.Wait()
		third := acquiring(t, c.Mutex("x"), t.Context())
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, zklock.ErrNotAcquired) {
			t.Error(err)
		}
		none(t, "the third", third)
		if n := nodes(e); n != 2 {
			t.Errorf("%d nodes, want 2", n)
		}
		mustRelease(t, l)
		mustRelease(t, <-third)
	})
}

func TestPredecessorGoneBetweenListAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		var once sync.Once
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "watch" {
				once.Do(func() { mustRelease(t, l) })
			}
			return ctx, nil
		}}
		b := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second))))
	})
}

func TestWaitIsBoundedAcrossASilentPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		ids := e.Sessions()
		if err := b.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range e.Sessions() {
			if id != ids[0] {
				e.Partition(memdriver.AroundSession(id))
			}
		}
		began := time.Now()
		_, err := b.Mutex("x").Acquire(t.Context(), zklock.WithWait(2*time.Second))
		if !errors.Is(err, zklock.ErrUnavailable) || time.Since(began) != 2*time.Second {
			t.Errorf("Acquire returned after %v: %v, want ErrUnavailable after 2s", time.Since(began), err)
		}
		e.Heal()
		mustRelease(t, l)
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context())))
	})
}

func TestOwnNodeDeletedBeforePredecessorLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, b.Mutex("x"), t.Context())
		queue, _ := a.Contenders(t.Context(), "x")
		if err := a.Break(t.Context(), "x", queue[1].Node); err != nil {
			t.Fatal(err)
		}
		third := acquiring(t, c.Mutex("x"), t.Context())
		mustRelease(t, l)
		l = <-third
		none(t, "the waiter whose node was deleted", second)
		mustRelease(t, l)
		mustRelease(t, <-second)
	})
}

// A waiter with two ahead watches its own node, and the event of the node's deletion never arrives. The event that
// the last of the two has left does not do: the waiter reads its own node before a grant.
func TestGrantDoesNotDependOnAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		ownWatch := faultdriver.Nth(2, about(faultdriver.On(faultdriver.Watch, faultdriver.LoseEvent())))
		a, b, c := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), ownWatch), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		between := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		waiter := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second) // until it watches its own node
		behind := acquiring(t, c.Mutex("x"), t.Context())
		queue, _ := a.Contenders(t.Context(), "x")
		if err := a.Break(t.Context(), "x", queue[2].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		mustRelease(t, <-between)
		l = <-behind
		none(t, "the waiter whose node was deleted", waiter)
		mustRelease(t, l)
		mustRelease(t, <-waiter)
	})
}

// A waiter watches the only contender ahead and its own node. Another program deletes its node, and then the
// other, and the waiter, which is busy, finds both events at once. The one behind holds then.
func TestOwnNodeGoesRightBeforeTheOnlyOneAhead(t *testing.T) {
	for range 20 { // it may look at either event first
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			ownWatch := faultdriver.Nth(2, about(faultdriver.On(faultdriver.Watch, faultdriver.DelayReply(time.Second))))
			a, b, c, s := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), ownWatch), nil), connect(t, e.Connector(), nil), plain(t, e)
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			waiter := acquiring(t, b.Mutex("x"), t.Context())
			time.Sleep(500 * time.Millisecond) // until it has sent the read that watches its own node
			behind := acquiring(t, c.Mutex("x"), t.Context())
			queue, _ := a.Contenders(t.Context(), "x")
			if _, err := s.Multi(t.Context(), []driver.Op{
				driver.DeleteOp("/zklock/x/"+queue[1].Node, driver.AnyVersion),
				driver.DeleteOp("/zklock/x/"+queue[0].Node, driver.AnyVersion),
			}); err != nil {
				t.Fatal(err)
			}
			next := <-behind
			time.Sleep(time.Second)
			none(t, "the waiter whose node was deleted", waiter)
			if err := l.Release(t.Context()); err != nil && !errors.Is(err, zklock.ErrNodeDeleted) {
				t.Error(err)
			}
			none(t, "the waiter whose node was deleted", waiter)
			mustRelease(t, next)
			mustRelease(t, <-waiter)
		})
	}
}

// While a waiter has no connection, its node is deleted, and the only contender ahead leaves. After the reconnect
// the server reports what the waiter has missed in any order: here the deletion of its own node comes last, or
// never. It must not take the first event for its turn.
func TestEventsAfterAReconnectGrantNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		before := e.Sessions()
		ownWatch := faultdriver.Nth(2, about(faultdriver.On(faultdriver.Watch, faultdriver.LoseEvent())))
		b := connect(t, faultdriver.Wrap(e.Connector(), ownWatch), nil)
		waiter := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second) // until it watches its own node
		behind := acquiring(t, c.Mutex("x"), t.Context())
		for _, id := range e.Sessions() {
			if !slices.Contains(before, id) && len(before) > 0 {
				e.Partition(memdriver.AroundSession(id).Reset())
				before = nil
			}
		}
		queue, _ := a.Contenders(t.Context(), "x")
		if err := memcontrol.Of(e).Delete("/zklock/x/" + queue[1].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		l = <-behind
		e.Heal()
		for range 50 {
			none(t, "the waiter whose node was deleted", waiter)
			time.Sleep(100 * time.Millisecond)
		}
		if st := b.Stats(); st.Reconnects != 1 || st.SessionsLost != 0 {
			t.Errorf("%+v, want a reconnect and no lost session", st)
		}
		mustRelease(t, l)
		mustRelease(t, <-waiter)
	})
}

// An operator deletes a waiter's node while two others wait behind it. Neither of the two may take
// the deletion for its turn. The waiter itself is still the next one in the list that it has read.
// It must not get in while one of the others holds.
func TestOwnNodeDeletedWithTwoWaitersBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, time.Second} { // how long after the deletion the holder leaves
			e := memdriver.New()
			var cs []*zklock.Client
			for range 4 {
				cs = append(cs, connect(t, e.Connector(), nil))
			}
			l := mustLock(t)(cs[0].Mutex("x").Acquire(t.Context()))
			deleted := acquiring(t, cs[1].Mutex("x"), t.Context())
			third := acquiring(t, cs[2].Mutex("x"), t.Context())
			fourth := acquiring(t, cs[3].Mutex("x"), t.Context())
			queue, err := cs[0].Contenders(t.Context(), "x")
			if err != nil || len(queue) != 4 {
				t.Fatal(queue, err)
			}
			if err := memcontrol.Of(e).Delete("/zklock/x/" + queue[1].Node); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			none(t, "the third, while the first holds,", third)
			none(t, "the fourth, while the first holds,", fourth)
			last := l
			for _, next := range []chan *zklock.Lock{third, fourth, deleted} { // the deleted one has queued again, at the tail
				mustRelease(t, last)
				n := <-next
				if n.Token().Compare(last.Token()) <= 0 {
					t.Errorf("token %v after %v", n.Token(), last.Token())
				}
				time.Sleep(time.Second)
				for which, other := range map[string]chan *zklock.Lock{"the deleted one": deleted, "the third": third, "the fourth": fourth} {
					if other != next {
						none(t, which, other)
					}
				}
				last = n
			}
			mustRelease(t, last)
		}
	})
}

// The only contender ahead of a waiter leaves, and an event reports that to the waiter.
// But the waiter's own node is gone too, and its connection breaks before it can read
// that. The next server lags: it has applied neither deletion, and shows both nodes. The
// waiter must not take the absence of the node ahead on the one connection and the
// presence of its own node on the other for a grant: the contender behind it, whose
// server is up to date, holds by then.
func TestEventThenReconnectToALaggingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		leader := e.Leader()
		lagging := (leader + 1) % 3
		a, c := connect(t, e.Connector(leader), nil), connect(t, e.Connector(leader), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))

		var id atomic.Int64
		var armed atomic.Bool
		var once sync.Once
		stale := make(chan error, 1) // result of the waiter's first request after the event, the read of its own node
		hooks := zklock.Hooks{
			Session: func(ev zklock.SessionEvent) { id.Store(ev.ID) },
			Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				end := func(error) {}
				if ev.Kind == "watch" && armed.Load() {
					once.Do(func() {
						e.Partition(memdriver.BetweenSession(id.Load(), leader).Reset())
						end = func(err error) { stale <- err }
					})
				}
				return ctx, end
			},
		}
		e.Partition(memdriver.AroundClients(lagging).Reset())
		b := connect(t, e.Connector(leader, lagging), nil, zklock.WithHooks(hooks))
		waiter := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second) // it may have tried the other server first
		e.Heal()
		behind := acquiring(t, c.Mutex("x"), t.Context())
		queue, err := a.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 3 {
			t.Fatal(queue, err)
		}

		memcontrol.Of(e).Lag(lagging, 3*time.Second)
		armed.Store(true)
		if err := memcontrol.Of(e).Delete("/zklock/x/" + queue[1].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		n := <-behind
		if !n.Valid() {
			t.Error("the lock of the contender behind is not valid")
		}
		for range 50 {
			none(t, "the waiter whose node is gone,", waiter)
			time.Sleep(100 * time.Millisecond)
		}
		if err := <-stale; err != nil {
			t.Errorf("the lagging server did not show the deleted node: %v", err)
		}
		if st := b.Stats(); st.Reconnects == 0 || st.SessionsLost != 0 {
			t.Errorf("%+v, want a reconnect and no lost session", st)
		}
		mustRelease(t, n)
		w := <-waiter
		if w.Token().Compare(n.Token()) <= 0 {
			t.Errorf("token %v after %v", w.Token(), n.Token())
		}
		mustRelease(t, w)
	})
}
