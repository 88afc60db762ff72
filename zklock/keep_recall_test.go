package zklock_test

import (
	"errors"
	"fmt"
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

// TestTriesOfIdleKeptNamesFarAway: a try waits for a recall for as long as that takes on the
// present network, whichever servers it and the client that keeps the name are connected to. A try
// of a name that is in use still fails, after two seconds at the latest.
func TestTriesOfIdleKeptNamesFarAway(t *testing.T) {
	const servers = 5
	tries := corekit.Crowd(80)
	for _, latency := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, together: %v", latency, together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithServers(servers), memdriver.WithLatency(latency))
					var keepers, others []*zklock.Client // one at each server
					for range servers {
						keepers = append(keepers, keeping(t, e, "keep", "1h"))
					}
					for range servers {
						others = append(others, connect(t, e.Connector(), nil))
					}
					for i, name := range names(tries) {
						for nodes(e) == i {
							use(t, keepers[i%servers].Mutex(name))
						}
					}
					var failed atomic.Int32
					var all sync.WaitGroup
					for i, name := range names(tries) {
						try := func() {
							l, err := others[i/servers%servers].Mutex(name).TryAcquire(t.Context())
							if err != nil {
								failed.Add(1)
								return
							}
							mustRelease(t, l)
						}
						if all.Go(try); !together {
							all.Wait()
						}
					}
					all.Wait()
					if n := failed.Load(); n > 0 {
						t.Errorf("%d of %d tries of names that nothing uses have failed", n, tries)
					}

					synctest.Wait()
					time.Sleep(time.Second)
					for nodes(e) == 0 {
						use(t, keepers[0].Mutex("x"))
					}
					held := mustLock(t)(keepers[0].Mutex("x").Acquire(t.Context()))
					queued := make(chan time.Time, 1)
					go func() {
						for nodes(e) == 1 {
							time.Sleep(time.Millisecond)
						}
						queued <- time.Now()
					}()
					_, err := others[0].Mutex("x").TryAcquire(t.Context())
					least, most := 200*time.Millisecond, 2*time.Second+3*latency // until its client knows that it is queued
					if took := time.Since(<-queued); !errors.Is(err, zklock.ErrNotAcquired) || took < least || took > most {
						t.Errorf("a try of a lock in use: %v after it was queued: %v; want a failure after %v to %v", took, err, least, most)
					}
					mustRelease(t, held)
				})
			})
		}
	}
}

// TestKeptNamesAndMaxContenders: a node that its client may keep does not count for
// max_contenders. All others do, also those that wait behind it.
func TestKeptNamesAndMaxContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := keeping(t, e, "keep", "1h")
		limited := func(n int) *zklock.Client {
			return connect(t, e.Connector(), map[string]string{"max_contenders": fmt.Sprint(n)})
		}
		for name, other := range map[string]func(*zklock.Client) zklock.Acquirer{
			"a writer": func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") },
			"a reader": func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() },
			"All":      func(c *zklock.Client) zklock.Acquirer { return allOf(c, "w", "x") },
		} {
			for _, try := range []bool{false, true} {
				b, acquire := other(limited(1)), zklock.Acquirer.Acquire
				if try {
					acquire = zklock.Acquirer.TryAcquire
				}
				for i := range 3 {
					keep(t, e, a.Mutex("x"))
					l, err := acquire(b, t.Context())
					if err != nil {
						t.Errorf("%s, try: %v, acquisition %d of a name that another client keeps: %v", name, try, i, err)
						continue
					}
					mustRelease(t, l)
					synctest.Wait()
				}
			}
		}

		// A queue behind a kept node that is in use has max_contenders waiters.
		keep(t, e, a.Mutex("x"))
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		first := connect(t, e.Connector(), nil)
		waiting := []chan *zklock.Lock{acquiring(t, first.Mutex("x"), t.Context())}
		for range 2 {
			c := limited(3)
			mustRelease(t, mustLock(t)(c.Mutex("free").Acquire(t.Context()))) // the session's first heartbeats are over
			waiting = append(waiting, acquiring(t, c.Mutex("x"), t.Context()))
		}
		refused := func(what string, from zklock.Acquirer, lists int) {
			t.Helper()
			before := memcontrol.Of(e).Ops().Children
			if _, err := from.Acquire(t.Context()); !errors.Is(err, zklock.ErrTooManyWaiters) {
				t.Errorf("%s: %v, want ErrTooManyWaiters", what, err)
			}
			if n := memcontrol.Of(e).Ops().Children - before; n != lists {
				t.Errorf("%s cost %d lists, want %d", what, n, lists)
			}
			synctest.Wait()
			if n := nodes(e); n != 4 {
				t.Errorf("%s: %d contenders, want the holder and three waiters", what, n)
			}
		}
		began := time.Now()
		refused("one too many", limited(3).Mutex("x"), 0)
		refused("one too many by another limit", limited(2).Mutex("x"), 0)
		refused("All, one too many", allOf(limited(3), "w", "x"), 0)
		mustRelease(t, held)
		for _, w := range waiting {
			mustRelease(t, soon(t, "a waiter", w))
		}

		// Without a kept node the limit counts all of them.
		held = mustLock(t)(first.Mutex("x").Acquire(t.Context()))
		other := mustLock(t)(first.Mutex("w").Acquire(t.Context()))
		waiting = []chan *zklock.Lock{acquiring(t, limited(3).Mutex("x"), t.Context()), acquiring(t, limited(3).Mutex("x"), t.Context())}
		refused("one too many, and none is kept", limited(3).Mutex("x"), 1)
		refused("All, and the first name is taken", allOf(limited(3), "w", "x"), 2)
		if took := time.Since(began); took > 0 {
			t.Errorf("the refusals took %v, want none to wait", took)
		}
		mustRelease(t, other)
		mustRelease(t, held)
		for _, w := range waiting {
			mustRelease(t, soon(t, "a waiter", w))
		}
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
		slow, cut := false, false
		a := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
			if slow { // else it may give the place up before the other client watches it
				return faultdriver.Delay(time.Millisecond)
			}
			return faultdriver.None()
		}), map[string]string{"keep": "1s"})
		keep(t, e, a.Mutex("x"))
		slow = true
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
			rounds := 50
			if together > 1 { // each round has as many random pauses
				rounds = corekit.Crowd(rounds)
			}
			for i := range rounds {
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

// TestRecallStorm: a process keeps a name, and then ninety-nine others want it at the same time.
// Each of them would keep it. In each round another process is the one that keeps it first. At no
// time do two hold the lock. All get it, and the first process has given up its kept place by then.
func TestRecallStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 100
		rounds := corekit.Crowd(20)
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
