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

// operating calls f once, before the first operation of that kind.
func operating(kind string, f func()) zklock.Hooks {
	var once sync.Once
	return zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
		if ev.Kind == kind {
			once.Do(f)
		}
		return ctx, nil
	}}
}

// GUIDs, which begin with the session's id, do not count in the order of the
// queue, only the number at the end does.
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
				none(t, "somebody beside the holder", w)
			}
			mustRelease(t, l)
			synctest.Wait()
			if len(waiting[i]) != 1 {
				t.Fatalf("not granted to number %d in the queue:\n%s", i, e.Dump())
			}
			l = <-waiting[i]
		}
		mustRelease(t, l)
	})
}

// A permit that is granted between a list and the watch that it leads to has
// been marked by then: who is behind is the first in line, and watches everybody.
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
			time.Sleep(time.Second) // its mark is written
		}))), t.Context())
		time.Sleep(2 * time.Second)
		none(t, "the fourth, beside two holders", fourth)
		mustRelease(t, second)
		synctest.Wait()
		if len(fourth) != 1 {
			t.Fatalf("a permit is free, and the first in line does not know:\n%s", e.Dump())
		}
		mustRelease(t, <-fourth)
		mustRelease(t, l)
	})
}

// A node that somebody has put in the place of ours, by the same name,
// is not ours.
func TestNodePutInPlaceOfOursIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, s := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), plain(t, e)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		second := acquiring(t, b.Mutex("x"), t.Context())
		queue, err := a.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 2 {
			t.Fatalf("%v, %v", queue, err)
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
			t.Fatalf("%v, %v", names, err)
		}
		if n, err := s.Get(t.Context(), "/zklock/x/"+names[0]); err != nil || n.Stat.EphemeralOwner == s.ID() {
			t.Errorf("granted with a node of session %#x, which is another's: %v", n.Stat.EphemeralOwner, err)
		}
		mustRelease(t, l)
	})
}

// When the connection changes between the sight of an empty queue and that of
// our own node, the queue is looked at again, on the new one.
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
			t.Errorf("cut %v, and then %v: the queue was not read on the new connection", cut, kinds)
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
		time.Sleep(time.Second) // it watches its own node as well by now
		for _, id := range e.Sessions() {
			if id != holder {
				e.KillConnection(id)
			}
		}
		time.Sleep(3 * time.Second) // it is read again within a sixth of the session timeout
		mustRelease(t, l)
		synctest.Wait()
		if len(got) != 1 {
			t.Fatal("the lock is free, and who waits for it was not woken")
		}
		mustRelease(t, <-got)
	})
}

// A try that finds nobody, and is beaten to it by somebody else before its node
// is there, does not wait for them.
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
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		synctest.Wait()
		if n := nodes(e); l == nil || n != 1 {
			t.Errorf("%d nodes:\n%s", n, e.Dump())
		}
		mustRelease(t, l)
		mustRelease(t, mustLock(t)(c.Mutex("x").TryAcquire(ctx))) // nothing of the first try is in the way
	})
}

// A try catches up with what this client itself has released on another session.
func TestTrySeesAReleaseOnAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"pool_max_lifetime": "3s"})
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		var l *zklock.Lock
		try := func() { l = mustLock(t)(c.Mutex("x").TryAcquire(t.Context())) }
		if d := cost(e, try); d.Syncs != 0 {
			t.Errorf("on the same session: %+v", d)
		}
		mustRelease(t, l)
		time.Sleep(4 * time.Second)
		if d := cost(e, try); d.Syncs != 1 {
			t.Errorf("on another session: %+v", d)
		}
		mustRelease(t, l)
	})
}

// A change of the node that is waited for is no departure.
func TestDowngradeLetsNoWriterIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		writer := acquiring(t, b.Mutex("x"), t.Context())
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		none(t, "a writer beside what is a reader now", writer)
		time.Sleep(5 * time.Second)
		none(t, "a writer beside what is a reader now", writer)
		mustRelease(t, l)
		mustRelease(t, <-writer)
	})
}

// Tries that come at the same time take the permits that there are.
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
			t.Errorf("%d hold one of 3 permits:\n%s", n, e.Dump())
		}
		for range len(held) {
			mustRelease(t, <-held)
		}
	})
}
