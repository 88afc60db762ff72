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

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// keeping opens a client that keeps names for a second after their last use.
func keeping(t *testing.T, e *memdriver.Ensemble, params ...string) *zklock.Client {
	t.Helper()
	all := map[string]string{"keep": "1s"}
	for i := 0; i < len(params); i += 2 {
		all[params[i]] = params[i+1]
	}
	return connect(t, e.Connector(), all)
}

// use acquires and releases a lock.
func use(t *testing.T, a zklock.Acquirer) {
	t.Helper()
	mustRelease(t, mustLock(t)(a.Acquire(t.Context())))
	synctest.Wait()
}

// keep uses a lock until its client keeps the name.
func keep(t *testing.T, e *memdriver.Ensemble, a zklock.Acquirer) {
	t.Helper()
	for uses := 1; ; uses++ {
		before := nodes(e)
		use(t, a)
		switch {
		case nodes(e) > before || before > 0:
			return
		case uses == 200:
			t.Fatalf("%s is not kept after %d uses", a.Name(), uses)
		}
	}
}

// allOf returns the All of some mutexes.
func allOf(c *zklock.Client, names ...string) zklock.Acquirer {
	var all []zklock.Acquirer
	for _, name := range names {
		all = append(all, c.Mutex(name))
	}
	return zklock.All(all...)
}

var free = memcontrol.Ops{}

func TestKeptNameCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		c := keeping(t, e)
		for i, a := range []zklock.Acquirer{c.Mutex("mutex"), c.RWMutex("reader").Reader(), c.RWMutex("writer").Writer()} {
			use(t, a)
			if n := nodes(e); n != i {
				t.Fatalf("%s: %d nodes after the first use, want the %d kept before", a.Name(), n, i)
			}
			use(t, a)
			if who, err := c.Contenders(t.Context(), a.Name()); err != nil || len(who) != 1 || !who[0].Kept {
				t.Errorf("%s: contenders %+v, %v, want one that may be kept", a.Name(), who, err)
			}
			if st := c.Stats(); nodes(e) != i+1 || st.Kept != i+1 || st.Held != 0 {
				t.Fatalf("%s: %d nodes after the second use, want %d; Stats has Kept %d and Held %d", a.Name(), nodes(e), i+1, st.Kept, st.Held)
			}
			var before zklock.Token
			for range 5 {
				wantCost(t, "a turn of kept "+a.Name(), cost(e, func() {
					l := mustLock(t)(a.Acquire(t.Context()))
					if l.Token().Compare(before) <= 0 {
						t.Errorf("%s: token %v after %v", a.Name(), l.Token(), before)
					}
					before = l.Token()
					if st := c.Stats(); st.Held != 1 || st.Kept != i {
						t.Errorf("%s: Stats has Held %d and Kept %d while one is held, want %d kept", a.Name(), st.Held, st.Kept, i)
					}
					mustRelease(t, l)
				}), free)
				wantCost(t, "a try of kept "+a.Name(), cost(e, func() {
					l := mustLock(t)(a.TryAcquire(t.Context()))
					before = l.Token()
					mustRelease(t, l)
				}), free)
			}
		}
		if n := c.Stats().Handovers; n != 30 {
			t.Errorf("Stats has %d hand-overs, want 30", n)
		}
		time.Sleep(900 * time.Millisecond)
		if n := nodes(e); n != 3 {
			t.Errorf("%d nodes 0.9s after the last use, want 3", n)
		}
		time.Sleep(300 * time.Millisecond)
		if n := nodes(e); n != 0 || c.Stats().Kept != 0 {
			t.Errorf("%d nodes 1.2s after the last use, and Kept is %d, want 0", n, c.Stats().Kept)
		}
		wantCost(t, "the next acquire", cost(e, func() { use(t, c.Mutex("mutex")) }), memcontrol.Ops{Multis: 1, MultiOps: 2})
	})
}

// TestUsesInBetweenCount: a name that two processes use in turn is not kept.
func TestUsesInBetweenCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := keeping(t, e), keeping(t, e)
		for i := range 20 {
			use(t, a.Mutex("x"))
			use(t, b.Mutex("x"))
			if n := nodes(e); n != 0 {
				t.Fatalf("the name is kept after turn %d", i)
			}
		}
	})
}

// TestKeptReaders: readers of a kept place share it, writers of the same process replace it,
// and a writer's kept place goes to readers and back.
func TestKeptReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e)
		rw := c.RWMutex("x")
		keep(t, e, rw.Reader())
		wantCost(t, "three readers", cost(e, func() {
			var all []*zklock.Lock
			for range 3 {
				time.Sleep(60 * time.Millisecond) // beyond handover_time in all
				all = append(all, mustLock(t)(rw.Reader().Acquire(t.Context())))
			}
			for _, l := range all {
				mustRelease(t, l)
			}
		}), free)
		wantCost(t, "a writer after readers", cost(e, func() {
			l := mustLock(t)(rw.Writer().Acquire(t.Context()))
			if n := nodes(e); n != 1 {
				t.Errorf("%d nodes while the writer holds, want its own only", n)
			}
			mustRelease(t, l)
		}), memcontrol.Ops{Multis: 2, MultiOps: 4, Events: 1}) // delete, create, set; delete; the watch on the queue fires
		keep(t, e, rw.Writer())
		wantCost(t, "writers and readers", cost(e, func() {
			for range 5 {
				use(t, rw.Writer())
				use(t, rw.Reader())
				time.Sleep(30 * time.Millisecond) // beyond handover_time in all
			}
		}), free)
		// A reader of another process gets in with the readers that have the writer's node.
		l := mustLock(t)(rw.Reader().Acquire(t.Context()))
		other := acquiring(t, connect(t, e.Connector(), nil).RWMutex("x").Reader(), t.Context())
		mustRelease(t, soon(t, "a reader of another process", other))
		mustRelease(t, l)
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes after the recall, want 0", n)
		}
	})
}

// TestTryOfAKeptName: a try of another client waits for one recall: it gets a lock that is
// not in use, and fails after 200ms for one that is.
func TestTryOfAKeptName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		a := keeping(t, e)
		for _, test := range []struct {
			what string
			try  func(*zklock.Client) zklock.Acquirer
		}{
			{"a writer", func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") }},
			{"a reader", func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() }},
			{"All", func(c *zklock.Client) zklock.Acquirer { return allOf(c, "x", "y") }},
		} {
			b := connect(t, e.Connector(), nil)
			keep(t, e, a.Mutex("x"))
			l, err := test.try(b).TryAcquire(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", test.what, err)
			}
			mustRelease(t, l)

			keep(t, e, a.Mutex("x"))
			held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			began := time.Now()
			_, err = test.try(b).TryAcquire(t.Context())
			if took := time.Since(began); !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) || took < 200*time.Millisecond || took > 230*time.Millisecond {
				t.Errorf("%s: a try of a held lock that may be kept: after %v: %v", test.what, took, err)
			}
			synctest.Wait()
			time.Sleep(time.Second)
			if n := nodes(e); n != 1 {
				t.Errorf("%s: %d nodes, want the holder's only", test.what, n)
			}
			if st := b.Stats(); st.Contended != 0 {
				t.Errorf("%s: the try counts as one that waited", test.what)
			}
			mustRelease(t, held)

			// A lock that will not be kept after its use is refused at once.
			held = mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			began = time.Now()
			_, err = test.try(b).TryAcquire(t.Context())
			if took := time.Since(began); !errors.Is(err, zklock.ErrNotAcquired) || took > 20*time.Millisecond {
				t.Errorf("%s: a try of a held lock: after %v: %v", test.what, took, err)
			}
			mustRelease(t, held)
		}
	})
}

// TestKeptNameOfTheSameClient: requests of the same client that take separate places do not
// wait for a kept one, and do not conflict with it.
func TestKeptNameOfTheSameClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		c := keeping(t, e, "pool_max_sessions", "3")
		ctx := t.Context()
		for _, test := range []struct {
			what    string
			acquire func() (*zklock.Lock, error)
		}{
			{"without hand-over", func() (*zklock.Lock, error) { return c.Mutex("x").Acquire(ctx, zklock.WithoutHandover()) }},
			{"a try without hand-over", func() (*zklock.Lock, error) { return c.Mutex("x").TryAcquire(ctx, zklock.WithoutHandover()) }},
			{"All", func() (*zklock.Lock, error) { return allOf(c, "a", "x", "z").Acquire(ctx) }},
			{"a try of All", func() (*zklock.Lock, error) { return allOf(c, "a", "x", "z").TryAcquire(ctx) }},
			{"a semaphore", func() (*zklock.Lock, error) { return c.Semaphore("x", 2).Acquire(ctx) }},
			{"a try of a semaphore", func() (*zklock.Lock, error) { return c.Semaphore("x", 2).TryAcquire(ctx) }},
		} {
			keep(t, e, c.Mutex("x"))
			began := time.Now()
			l, err := test.acquire()
			if err != nil {
				t.Errorf("%s: %v", test.what, err)
				continue
			}
			if took := time.Since(began); took > 40*time.Millisecond {
				t.Errorf("%s took %v, with round trips of 4 to 6ms", test.what, took)
			}
			mustRelease(t, l)
		}
		keep(t, e, c.RWMutex("x").Reader())
		l, err := c.RWMutex("x").Writer().TryAcquire(ctx)
		if err != nil {
			t.Fatalf("a writer's try after readers: %v", err)
		}
		mustRelease(t, l)
	})
}

// TestKeptPlaceIsLost: the end of the session, or the deletion of the node, ends a kept
// place. The next holder of the process queues behind the contenders that came before it.
func TestKeptPlaceIsLost(t *testing.T) {
	for what, lose := range map[string]func(e *memdriver.Ensemble){
		"expired":   func(e *memdriver.Ensemble) { e.ExpireAll() },
		"deleted":   func(e *memdriver.Ensemble) { e.Break("/zklock/x") },
		"cut off":   func(e *memdriver.Ensemble) { cutFor(e, 0, time.Minute) },
		"suspended": func(e *memdriver.Ensemble) { cutFor(e, 0, 3*time.Second) }, // too short to lose the session
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				a := keeping(t, e, "keep", "1h")
				keep(t, e, a.Mutex("x"))
				lose(e)
				time.Sleep(2 * time.Second)
				if n := a.Stats().Kept; n != 0 && what != "suspended" {
					t.Errorf("Kept is %d after the loss", n)
				}
				theirs := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
				l := soon(t, "another client", theirs)
				mine := acquiring(t, a.Mutex("x"), t.Context())
				none(t, "the client that had kept the name", mine)
				if st := a.Stats(); st.Lost != 0 || st.Kept != 0 {
					t.Errorf("Stats has Lost %d and Kept %d, want 0", st.Lost, st.Kept)
				}
				mustRelease(t, l)
				mustRelease(t, <-mine)
			})
		})
	}
}

// kept returns the session whose client keeps a name.
func kept(t *testing.T, c *zklock.Client, name string) int64 {
	t.Helper()
	found, err := c.Contenders(t.Context(), name)
	if err != nil || len(found) != 1 || !found[0].Kept {
		t.Fatalf("%+v, %v; want a kept node", found, err)
	}
	return found[0].Session
}

// TestKeepIsRefused: places that must leave at their release are not kept.
func TestKeepIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e, "pool_max_lifetime", "1m")
		for _, a := range []zklock.Acquirer{c.Semaphore("s", 3), allOf(c, "p", "q")} {
			for range 5 {
				use(t, a)
			}
			if n := nodes(e); n != 0 {
				t.Errorf("%s is kept", a.Name())
			}
		}
		for range 5 {
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithoutHandover())))
		}
		if n := nodes(e); n != 0 {
			t.Error("a place without hand-over is kept")
		}
		keep(t, e, c.Mutex("x"))
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		time.Sleep(2 * time.Minute)
		mustRelease(t, l)
		synctest.Wait()
		if n := nodes(e); n != 0 {
			t.Error("a place is kept on a session that has to be replaced because of its age")
		}
		use(t, c.Mutex("x"))
		if st := c.Stats(); st.SessionsOpened != 2 || st.Draining != 0 {
			t.Errorf("%d sessions were opened and %d drain, want 2 and 0", st.SessionsOpened, st.Draining)
		}
	})
}

// TestPlaceInDoubtIsNotKept: while a Txn may still be applied, its place is deleted.
func TestPlaceInDoubtIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.LoseReply()))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"keep": "1s"})
		keep(t, e, c.Mutex("x"))
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if _, err := l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll))); !errors.Is(err, zklock.ErrUnknownOutcome) {
			t.Fatalf("%v, want ErrUnknownOutcome", err)
		}
		mustRelease(t, l)
		synctest.Wait()
		if n := nodes(e); n != 0 {
			t.Error("a place with a Txn in doubt is kept")
		}
	})
}

// TestKeepMax: of more than keep_max names, those that were used last are kept.
func TestKeepMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e, "keep_max", "3", "keep", "1h")
		for _, name := range names(6) {
			use(t, c.Mutex(name))
			use(t, c.Mutex(name))
			use(t, c.Mutex("often"))
		}
		kept, s := map[string]bool{}, plain(t, e)
		for _, name := range append(names(6), "often") {
			if children, _, err := s.Children(t.Context(), "/zklock/"+name); err != nil {
				t.Fatal(err)
			} else if len(children) > 0 {
				kept[name] = true
			}
		}
		if got := fmt.Sprint(kept); got != "map[name-4:true name-5:true often:true]" || c.Stats().Kept != 3 {
			t.Errorf("kept: %s, Kept is %d", got, c.Stats().Kept)
		}
	})
}

// TestShutdownWithKeptNames: kept names are not held, so Shutdown does not wait for them.
func TestShutdownWithKeptNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e, "keep", "1h")
		for _, name := range names(100) {
			keepQuickly(t, c.Mutex(name))
		}
		held := mustLock(t)(c.Mutex("held").Acquire(t.Context()))
		done := make(chan error, 1)
		go func() { done <- c.Shutdown(t.Context()) }()
		synctest.Wait()
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes while Shutdown waits for a lock, want 1", n)
		}
		mustRelease(t, held)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes after Shutdown, want 0", n)
		}
	})
}

// keepQuickly uses a fresh name twice. Then the client keeps it.
func keepQuickly(t *testing.T, a zklock.Acquirer) {
	t.Helper()
	for range 2 {
		mustRelease(t, mustLock(t)(a.Acquire(t.Context())))
	}
}

func TestKeepNeedsHandover(t *testing.T) {
	for _, off := range []string{"handover_limit=0", "handover_time=0s"} {
		if _, err := zklock.Open("mem://keep?keep=1s&" + off); err == nil || !strings.Contains(err.Error(), `"keep" needs hand-over`) {
			t.Errorf("%s: %v", off, err)
		}
	}
}

// TestManyKeptNames: ten thousand names are kept, used without a request, recalled by another
// client, and given up when their time is over.
func TestManyKeptNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenth := corekit.Crowd(1000)
		e := memdriver.New()
		a, b := keeping(t, e, "keep", "1m", "keep_max", fmt.Sprint(9*tenth)), connect(t, e.Connector(), nil)
		all := names(10 * tenth)
		for _, name := range all {
			keepQuickly(t, a.Mutex(name))
		}
		synctest.Wait()
		if got := a.Stats().Kept; got != 9*tenth || nodes(e) != 9*tenth {
			t.Fatalf("%d are kept, %d nodes, want %d", got, nodes(e), 9*tenth)
		}
		spent := cost(e, func() {
			for _, name := range all[2*tenth:] {
				mustRelease(t, mustLock(t)(a.Mutex(name).Acquire(t.Context())))
			}
		})
		if spent.Children+spent.MultiOps+spent.Gets > 50 { // heartbeats
			t.Errorf("%d turns of kept names cost %+v", 8*tenth, spent)
		}
		var others sync.WaitGroup
		for _, name := range all[9*tenth:] {
			others.Go(func() { mustRelease(t, mustLock(t)(b.Mutex(name).Acquire(t.Context()))) })
		}
		others.Wait()
		synctest.Wait()
		if got := a.Stats().Kept; got != 8*tenth {
			t.Errorf("%d are kept after %d recalls, want %d", got, tenth, 8*tenth)
		}
		time.Sleep(2 * time.Minute)
		if got := a.Stats().Kept; got != 0 || nodes(e) != 0 || memcontrol.Of(e).WatchCount() != 0 {
			t.Errorf("%d are kept after their time, %d nodes, %d watches", got, nodes(e), memcontrol.Of(e).WatchCount())
		}
	})
}

// TestKeptPlaceNeedsALease: a kept place is not granted while the lease is too short, and is
// when heartbeats are answered again.
func TestKeptPlaceNeedsALease(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e, "keep", "1h")
		keep(t, e, c.Mutex("x"))
		cut := memdriver.AroundSession(e.Sessions()[0])
		e.Partition(cut)
		time.Sleep(7400 * time.Millisecond) // of a lease of less than 9.9s, less than a quarter is left
		got := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(100 * time.Millisecond)
		none(t, "a goroutine on a lease that is nearly over", got)
		e.Heal(cut)
		l := <-got
		if !l.Valid() || l.Token().Turn == 0 {
			t.Errorf("Valid is %v, the token is %v, want the kept place", l.Valid(), l.Token())
		}
		mustRelease(t, l)
	})
}
