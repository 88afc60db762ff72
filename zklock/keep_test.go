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

	"github.com/zklock/go-zklock/internal/faultcontrol"
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

// TestKeptNameIsRecalled: another client that wants a kept name gets it soon. After each such
// recall the first client must use the name alone twice as many times in a row before it keeps the
// name again, but no more than 64 times.
func TestKeptNameIsRecalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		a, b := keeping(t, e, "keep", "1h"), connect(t, e.Connector(), nil)
		var needed []int
		for range 8 {
			uses := 0
			for nodes(e) == 0 {
				use(t, a.Mutex("x"))
				if uses++; uses > 100 {
					t.Fatal("the name is not kept any more")
				}
			}
			needed = append(needed, uses)
			time.Sleep(time.Second)
			began := time.Now()
			l := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
			// b creates its node and reads it before the grant. In between it lists the queue
			// and arms a watch, while a gets its event and deletes the kept node, and b gets
			// the event of that.
			if took := time.Since(began); took > 40*time.Millisecond {
				t.Errorf("recall %d took %v, with round trips of 4 to 6ms", len(needed), took)
			}
			if st := a.Stats(); st.Kept != 0 {
				t.Errorf("Kept is %d after a recall", st.Kept)
			}
			mustRelease(t, l)
			time.Sleep(time.Second)
		}
		if got, want := fmt.Sprint(needed), "[2 4 8 16 32 64 64 64]"; got != want {
			t.Errorf("the name was used %s times before it was kept, want %s", got, want)
		}
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

// After a recall a place's node no longer says that it may be kept, however often the name was used
// before: a try of another client that finds the lock held fails at once.
func TestRecallEndsTheUsesInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := keeping(t, e), connect(t, e.Connector(), nil)
		for range 10 {
			use(t, a.Mutex("x"))
			time.Sleep(2 * time.Second) // the client gives the place up
		}
		keep(t, e, a.Mutex("x"))
		use(t, b.Mutex("x"))
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		if who, err := a.Contenders(t.Context(), "x"); err != nil || len(who) != 1 || who[0].Kept {
			t.Errorf("contenders %+v, %v, want one that may not be kept", who, err)
		}
		mustRelease(t, l)
	})
}

// TestRecallOfALockInUse: from the arrival of another contender on, the limits of hand-over
// count, and the place leaves at the end.
func TestRecallOfALockInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := keeping(t, e, "handover_limit", "3"), connect(t, e.Connector(), nil)
		keep(t, e, a.Mutex("x"))
		first := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		time.Sleep(time.Minute) // much longer than handover_time, which does not count yet
		var order []string
		var all sync.WaitGroup
		take := func(c *zklock.Client, client string) {
			all.Go(func() {
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				order = append(order, client)
				time.Sleep(time.Millisecond)
				mustRelease(t, l)
			})
			synctest.Wait()
		}
		take(a, "a")
		mustRelease(t, first)
		all.Wait()
		if n := a.Stats().Handovers; n != 2 || nodes(e) != 1 {
			t.Fatalf("%d hand-overs and %d nodes, want 2 and 1", n, nodes(e))
		}
		first = mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		for range 6 {
			take(a, "a")
		}
		order = nil
		take(b, "b")
		mustRelease(t, first)
		all.Wait()
		if got := fmt.Sprint(order); got != "[a a a b a a a]" {
			t.Errorf("the order is %s, want b fourth", got)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes are left, want 0", n)
		}
	})
}

// TestRecallDuringALongHold: the holder has the lock for longer than handover_time after the
// recall, so its place is not passed on.
func TestRecallDuringALongHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := keeping(t, e), connect(t, e.Connector(), nil)
		keep(t, e, a.Mutex("x"))
		first := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		theirs := acquiring(t, b.Mutex("x"), t.Context())
		mine := acquiring(t, a.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		mustRelease(t, first)
		mustRelease(t, soon(t, "the other client", theirs))
		mustRelease(t, soon(t, "our own next goroutine", mine))
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

// cutFor cuts the connection of the client with that index for a time.
func cutFor(e *memdriver.Ensemble, client int, d time.Duration) {
	cut := memdriver.AroundSession(e.Sessions()[client])
	e.Partition(cut)
	time.Sleep(d)
	e.Heal(cut)
}

// TestTryThatIsCutOffDuringARecall: a try that has lost its connection does not know whether the
// kept place was given up, so it does not say that the lock is taken.
func TestTryThatIsCutOffDuringARecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		keep(t, e, keeping(t, e).Mutex("x"))
		cut := false
		b := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
			if op.Kind == faultdriver.Watch && !cut { // on the place ahead
				cut = true
				e.Partition(memdriver.AroundSession(op.Session).Reset())
			}
			return faultdriver.None()
		}), nil)
		if _, err := b.Mutex("x").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNotAcquired) || !cut {
			t.Errorf("%v, want ErrUnavailable", err)
		}
		e.Heal()
		time.Sleep(time.Minute)
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes are left", n)
		}
	})
}

// TestRecallAfterAReconnect: a client that keeps a name notices a contender that has queued while
// the client had no connection.
func TestRecallAfterAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		a := keeping(t, e, "keep", "1h")
		keep(t, e, a.Mutex("x"))
		cut := memdriver.AroundSession(e.Sessions()[0])
		e.Partition(cut)
		b := connect(t, e.Connector(), nil)
		theirs := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		e.Heal(cut)
		mustRelease(t, soon(t, "a client that came while the keeper was cut off", theirs))
	})
}

// TestRecallAfterAReconnectIsBounded: after a reconnect a client lists the queues of its kept
// names again, beginning between a twelfth and a sixth of the session timeout later. Contenders
// that come before that wait for it. docs/guarantees.md has the bound.
func TestRecallAfterAReconnectIsBounded(t *testing.T) {
	const timeout, latency = 12 * time.Second, 5 * time.Millisecond
	for _, together := range []int{1, 64} { // names that one goroutine of the client watches
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithLatency(latency))
			a, b := keeping(t, e, "keep", "1h", "session_timeout", timeout.String()), connect(t, e.Connector(), nil)
			if err := b.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			longest := time.Duration(0)
			for i := range 50 {
				comes := time.Duration(0) // every other time, so that some of the random pauses are long
				if i%2 == 0 {
					comes = time.Duration(i/2%10) * timeout / 40
				}
				ends := timeout/6 + time.Duration(10+together)*2*latency // reconnecting, and a list of each name
				all := make([]string, together)
				for j := range all {
					all[j] = fmt.Sprint(i, "/", j)
					for range 3 { // the server may remove the name's znode between the first two
						use(t, a.Mutex(all[j]))
					}
				}
				session := kept(t, b, all[0])
				time.Sleep(timeout)
				began := time.Now()
				e.KillConnection(session)
				time.Sleep(comes)
				var waiters sync.WaitGroup
				for _, name := range all {
					waiters.Go(func() {
						mustRelease(t, mustLock(t)(b.Mutex(name).Acquire(t.Context())))
						if took := time.Since(began); took > max(ends, comes+20*latency) || comes == 0 && took < timeout/12 {
							t.Errorf("a client that comes %v after the connection was lost is granted an idle name after %v, want %v to %v, or at once", comes, took, timeout/12, ends)
						}
					})
				}
				waiters.Wait()
				longest = max(longest, time.Since(began)-comes)
			}
			if longest < timeout/8 {
				t.Errorf("no client has waited longer than %v", longest)
			}
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
		const n = 10_000
		e := memdriver.New()
		a, b := keeping(t, e, "keep", "1m", "keep_max", "9000"), connect(t, e.Connector(), nil)
		all := names(n)
		for _, name := range all {
			keepQuickly(t, a.Mutex(name))
		}
		synctest.Wait()
		if got := a.Stats().Kept; got != 9000 || nodes(e) != 9000 {
			t.Fatalf("%d are kept, %d nodes, want 9000", got, nodes(e))
		}
		spent := cost(e, func() {
			for _, name := range all[2000:] {
				mustRelease(t, mustLock(t)(a.Mutex(name).Acquire(t.Context())))
			}
		})
		if spent.Children+spent.MultiOps+spent.Gets > 50 { // heartbeats
			t.Errorf("8,000 turns of kept names cost %+v", spent)
		}
		var others sync.WaitGroup
		for _, name := range all[9000:] {
			others.Go(func() { mustRelease(t, mustLock(t)(b.Mutex(name).Acquire(t.Context()))) })
		}
		others.Wait()
		synctest.Wait()
		if got := a.Stats().Kept; got != 8000 {
			t.Errorf("%d are kept after 1,000 recalls, want 8000", got)
		}
		time.Sleep(2 * time.Minute)
		if got := a.Stats().Kept; got != 0 || nodes(e) != 0 || memcontrol.Of(e).WatchCount() != 0 {
			t.Errorf("%d are kept after their time, %d nodes, %d watches", got, nodes(e), memcontrol.Of(e).WatchCount())
		}
	})
}

// TestRecallStorm: a process keeps a name, and then ninety-nine others want it at the same time.
// Each of them would keep it. In each round another process is the one that keeps it first. At no
// time do two hold the lock. All get it, and the first process has given up its kept place by then.
func TestRecallStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, rounds = 100, 20
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		in := &corekit.Section{Room: 1}
		all := make([]*zklock.Client, clients)
		for i := range all {
			all[i] = keeping(t, e, "keep", "1h")
		}
		for round := range rounds {
			keeper := round * 37 % clients
			keep(t, e, all[keeper].Mutex("x"))
			if n := all[keeper].Stats().Kept; n != 1 {
				t.Fatalf("round %d: the keeper keeps %d names, want 1", round, n)
			}
			var others sync.WaitGroup
			for i, c := range all {
				if i != keeper {
					others.Go(func() { in.Work(c.Mutex("x"), 1, time.Duration(i%7)*time.Millisecond) })
				}
			}
			others.Wait()
			synctest.Wait()
			for i, c := range all {
				if n := c.Stats().Kept; n != 0 {
					t.Errorf("round %d: client %d keeps %d names after all others had the lock", round, i, n)
				}
			}
			if n := nodes(e); n != 0 {
				t.Errorf("round %d: %d nodes are left", round, n)
			}
		}
		for _, f := range in.Faults {
			t.Error(f)
		}
	})
}

// TestRecallAfterALostWatch: the event of a watch is lost with a connection. The queue is
// listed on the next connection, whatever the driver does.
func TestRecallAfterALostWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		a := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.WatchChildren, faultdriver.First(1, faultdriver.LoseEvent()))), map[string]string{"keep": "1h"})
		keep(t, e, a.Mutex("x"))
		id := e.Sessions()[0]
		theirs := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		time.Sleep(time.Second)
		none(t, "a client whose arrival the keeper cannot have seen", theirs)
		e.KillConnection(id)
		mustRelease(t, soon(t, "a client that came before the reconnect", theirs))
	})
}

// TestRecallByAContenderThatCameBefore: the other client queues while the lock is held, before
// anything watches the queue.
func TestRecallByAContenderThatCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		a := keeping(t, e, "keep", "1h")
		use(t, a.Mutex("x"))
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		theirs := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		time.Sleep(time.Minute)
		mustRelease(t, held)
		mustRelease(t, soon(t, "the other client", theirs))
	})
}

func TestChildrenWithoutASequenceDoNotRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, s := keeping(t, e), plain(t, e)
		use(t, a.Mutex("x"))
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		if _, err := s.Create(t.Context(), "/zklock/x/note", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, held)
		synctest.Wait()
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes, want the kept one", n)
		}
	})
}

// TestKeptPlaceNeedsALease: a kept place is not granted while the lease is too short, and is
// when heartbeats are answered again.
func TestKeptPlaceNeedsALease(t *testing.T) {
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
