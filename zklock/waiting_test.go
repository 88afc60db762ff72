package zklock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// Another session deletes a waiter's node and creates one with the same name. The waiter
// does not take that node for its own.
func TestNodePutInPlaceOfOursIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, s := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), plain(t, e)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, b.Mutex("x"), t.Context())
		queue, err := a.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 2 {
			t.Fatalf("contenders: %v, %v", queue, err)
		}
		path := "/zklock/x/" + queue[1].Node
		if _, err := s.Multi(t.Context(), []driver.Op{
			driver.DeleteOp(path, driver.AnyVersion),
			driver.CreateOp(path, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)),
		}); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		l = <-second
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("Verify: %v", err)
		}
		names, _, err := s.Children(t.Context(), "/zklock/x")
		if err != nil || len(names) != 1 {
			t.Fatalf("children: %v, %v; want one", names, err)
		}
		if n, err := s.Get(t.Context(), "/zklock/x/"+names[0]); err != nil || n.Stat.EphemeralOwner == s.ID() {
			t.Errorf("granted with a node of another session, %#x: %v", n.Stat.EphemeralOwner, err)
		}
		mustRelease(t, l)
	})
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

// A try finds the lock free, and another client acquires it before the try's node is
// created. The try does not wait for that client.
func TestTryThatIsBeatenDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		other := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(other.Mutex("x").Acquire(t.Context())))
		var l *zklock.Lock
		c := connect(t, e.Connector(), nil, zklock.WithHooks(operating("enqueue", func() {
			l = mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		})))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if _, err := c.Mutex("x").TryAcquire(ctx); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) > time.Second {
			t.Errorf("TryAcquire returned after %v: %v, want ErrNotAcquired at once", time.Since(began), err)
		}
		synctest.Wait()
		if n := nodes(e); l == nil || n != 1 {
			t.Errorf("%d nodes:\n%s", n, e.Dump())
		}
		mustRelease(t, l)
		mustRelease(t, mustLock(t)(c.Mutex("x").TryAcquire(ctx))) // the first try has left nothing behind
	})
}

// A try sees a release by the same client on another session: it sends a Sync first. On
// the same session it needs none.
func TestTrySeesAReleaseOnAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"pool_max_lifetime": "3s"})
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		var l *zklock.Lock
		try := func() { l = mustLock(t)(c.Mutex("x").TryAcquire(t.Context())) }
		if d := cost(e, try); d.Syncs != 0 {
			t.Errorf("a try on the same session: %+v, want no Sync", d)
		}
		mustRelease(t, l)
		time.Sleep(4 * time.Second)
		if d := cost(e, try); d.Syncs != 1 {
			t.Errorf("a try on another session: %+v, want one Sync", d)
		}
		mustRelease(t, l)
	})
}

// A writer that waits for a node does not take a change of that node for its departure.
func TestDowngradeLetsNoWriterIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		writer := acquiring(t, b.Mutex("x"), t.Context())
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		none(t, "a writer, while the downgraded one holds,", writer)
		time.Sleep(5 * time.Second)
		none(t, "a writer, while the downgraded one holds,", writer)
		mustRelease(t, l)
		mustRelease(t, <-writer)
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
