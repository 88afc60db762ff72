package integration_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestKeptNamesOnThreeServers runs three clients that keep names, each on a server of its
// own. Most of the time a name is used by one of them only. Now and then another one wants it,
// as a writer, a reader, one of several names, or with a try.
func TestKeptNamesOnThreeServers(t *testing.T) {
	long.Parallel(t)
	e := trioOfServers(t)
	const names, goroutines = 30, 10
	length := long.Time(t, "ZKLOCK_MIX", time.Second, 10*time.Second)
	var clients []*zklock.Client
	for i := range 3 {
		clients = append(clients, dial(t, e.Server(i).Addr(), quick("keep", "1s")))
	}
	var inside [names]struct {
		sync.Mutex
		writers, readers int
		last             zklock.Token
	}
	name := func(i int) string { return fmt.Sprint("name-", i) }
	var cycles, others, refused atomic.Int64
	enter := func(n int, l *zklock.Lock, mode zklock.Mode) (leave func()) {
		in := &inside[n]
		in.Lock()
		defer in.Unlock()
		if in.writers > 0 || mode == zklock.Exclusive && in.readers > 0 {
			t.Errorf("%s: a holder of mode %v got in next to %d writers and %d readers", name(n), mode, in.writers, in.readers)
		}
		if mode == zklock.Exclusive {
			if l.Token().Compare(in.last) <= 0 {
				t.Errorf("%s: token %v after %v", name(n), l.Token(), in.last)
			}
			in.last, in.writers = l.Token(), in.writers+1
			return func() { in.Lock(); defer in.Unlock(); in.writers-- }
		}
		in.readers++
		return func() { in.Lock(); defer in.Unlock(); in.readers-- }
	}
	var all sync.WaitGroup
	stop := time.Now().Add(length)
	for i, c := range clients {
		for g := range goroutines {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(g)))
			all.Go(func() {
				for time.Now().Before(stop) && !t.Failed() {
					n := rng.IntN(names/3)*3 + i // a third of the names is mostly this client's
					if rng.IntN(20) == 0 {
						n = rng.IntN(names)
						others.Add(1)
					}
					mode, wanted, acquirer := zklock.Exclusive, []int{n}, zklock.Acquirer(clients[i].Mutex(name(n)))
					switch rng.IntN(20) {
					case 0:
						mode, acquirer = zklock.Shared, c.RWMutex(name(n)).Reader()
					case 1:
						second := rng.IntN(names)
						if second != n {
							wanted, acquirer = []int{n, second}, zklock.All(c.Mutex(name(n)), c.Mutex(name(second)))
						}
					}
					acquire := acquirer.Acquire
					if rng.IntN(10) == 0 {
						acquire = acquirer.TryAcquire
					}
					l, err := acquire(within(t))
					if err != nil {
						refused.Add(1)
						continue
					}
					var leave []func()
					for _, w := range wanted {
						leave = append(leave, enter(w, l, mode))
					}
					if rng.IntN(50) == 0 {
						time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
					}
					for _, f := range leave {
						f()
					}
					release(t, l)
					cycles.Add(1)
					if rng.IntN(10) == 0 {
						time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
					}
				}
			})
		}
	}
	all.Wait()
	var handed uint64
	for _, c := range clients {
		handed += c.Stats().Handovers
	}
	t.Logf("%d cycles, of which %d in memory; %d on other clients' names; %d tries refused", cycles.Load(), handed, others.Load(), refused.Load())
	if handed == 0 || others.Load() == 0 {
		t.Error("no name was kept, or none was wanted by another client")
	}
	conn := dialRaw(t, e.Hosts(), patience)
	eventually(t, "all kept names are given up", func() bool {
		for n := range names {
			if children, _, err := conn.Children(clients[0].Mutex(name(n)).Path()); err == nil && len(children) > 0 {
				return false
			}
		}
		return true
	})
}

// TestKeptNameCostsNoRequest counts the requests for a kept name on a real server.
func TestKeptNameCostsNoRequest(t *testing.T) {
	t.Parallel()
	c := calmDialWith(t, calm(t).Server(0), quick("session_timeout", calmTimeout.String(), "pool_max_sessions", "1", "keep", "1h"))
	before := c.proxy.Counts() // one count for all of it: the list may be sent at any moment
	for uses := 0; c.Stats().Kept == 0; uses++ {
		if uses == 10 {
			t.Fatalf("the name is not kept after %d uses", uses)
		}
		release(t, acquire(t, c.Mutex("x")))
	}
	eventually(t, "the queue of the kept name is watched", func() bool { return c.since(before).requests["getChildren2"] > 0 })
	if got := c.costOf(func() {
		for range 1000 {
			release(t, acquire(t, c.Mutex("x")))
		}
	}); !got.equal(nothing) {
		t.Errorf("1,000 uses of a kept name: %v, want %v", got, nothing)
	}
}

// keepOn uses a name until its client keeps it.
func keepOn(t *testing.T, c *zklock.Client, name string) {
	t.Helper()
	for uses := 0; contendersOf(t, c, name) == 0; uses++ {
		if uses == 10 {
			t.Fatalf("%s is not kept after %d uses", name, uses)
		}
		release(t, acquire(t, c.Mutex(name)))
	}
}

// TestKeptNamesLeave: on a real server, a kept name leaves the queue if too many are kept, if the
// client shuts down, if another program deletes its node, and with its session. The client counts
// no loss, and does not believe that it still keeps the name.
func TestKeptNamesLeave(t *testing.T) {
	t.Parallel()
	hosts := sharedEnsemble(t).Hosts()
	t.Run("too many", func(t *testing.T) {
		c := dial(t, hosts, quick("keep", "1h", "keep_max", "3"))
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprint("name-", i))
			keepOn(t, c, names[i])
			if i > 0 {
				release(t, acquire(t, c.Mutex(names[0]))) // so that it is never the least recently used
			}
		}
		kept := func() (still []string) {
			for _, name := range names {
				if contendersOf(t, c, name) > 0 {
					still = append(still, name)
				}
			}
			return still
		}
		eventually(t, "three names are kept", func() bool { return len(kept()) == 3 })
		if got := fmt.Sprint(kept()); got != "[name-0 name-4 name-5]" || c.Stats().Kept != 3 {
			t.Errorf("kept: %s, Kept is %d", got, c.Stats().Kept)
		}
	})
	t.Run("shutdown", func(t *testing.T) {
		c, other := dial(t, hosts, quick("keep", "1h")), dial(t, hosts, quick())
		for i := range 20 {
			keepOn(t, c, fmt.Sprint("name-", i))
		}
		held := acquire(t, c.Mutex("held"))
		done := make(chan error, 1)
		go func() { done <- c.Shutdown(within(t)) }()
		for i := range 20 {
			eventually(t, "a kept name is given up while Shutdown waits for a lock", func() bool { return contendersOf(t, other, fmt.Sprint("name-", i)) == 0 })
		}
		if n := contendersOf(t, other, "held"); n != 1 || !held.Valid() {
			t.Errorf("%d contenders of the lock that Shutdown waits for, want 1; valid: %v", n, held.Valid())
		}
		release(t, held)
		if err := receive(t, "Shutdown", done); err != nil {
			t.Error(err)
		}
	})
	for _, loss := range []struct {
		name string
		lose func(t *testing.T, link *proxy.Proxy, node string)
	}{
		{"deleted by another program", func(t *testing.T, _ *proxy.Proxy, node string) {
			if err := dialRaw(t, hosts, patience).Delete(node, -1); err != nil {
				t.Fatal(err)
			}
		}},
		{"the session has expired", func(_ *testing.T, link *proxy.Proxy, _ string) { link.Cut() }},
	} {
		t.Run(loss.name, func(t *testing.T) {
			link := newProxy(t, hosts)
			c, other := dial(t, link.Addr(), quick("keep", "1h")), dial(t, hosts, quick())
			m := c.Mutex("x")
			keepOn(t, c, "x")
			nodes := contenders(t, dialRaw(t, hosts, patience), m)
			if len(nodes) != 1 {
				t.Fatalf("the queue of the kept name: %q", nodes)
			}
			loss.lose(t, link, m.Path()+"/"+nodes[0])
			l := acquire(t, other.Mutex("x"))
			eventually(t, "the client knows that it does not keep the name", func() bool { return c.Stats().Kept == 0 })
			link.Heal()
			mine := try(t, within(t), m)
			eventually(t, "the client queues", func() bool { return contendersOf(t, other, "x") == 2 })
			mine.pending(t)
			release(t, l)
			release(t, mine.must(t))
			if st := c.Stats(); st.Lost != 0 {
				t.Errorf("Lost is %d, want 0: no lock was held", st.Lost)
			}
		})
	}
}

// contendersOf returns how many contenders a name has.
func contendersOf(t *testing.T, c *zklock.Client, name string) int {
	t.Helper()
	list, err := c.Contenders(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestRecallOnAServer measures how long the acquire of a name takes that two processes use in
// turn: if neither keeps names, if both may, and if the other one keeps the name at that
// moment and does not use it.
func TestRecallOnAServer(t *testing.T) {
	t.Parallel()
	hosts := sharedEnsemble(t).Hosts()
	a, b := dial(t, hosts, quick()), dial(t, hosts, quick())
	keepA, keepB := dial(t, hosts, quick("keep", "1h")), dial(t, hosts, quick("keep", "1h"))
	uses := 0
	turns := []struct {
		what   string
		first  func()
		second zklock.Acquirer
		took   []time.Duration
	}{
		{what: "without keep", first: func() { release(t, acquire(t, a.Mutex("without"))) }, second: b.Mutex("without")},
		{what: "with keep, in turn", first: func() { release(t, acquire(t, keepA.Mutex("turn"))) }, second: keepB.Mutex("turn")},
		{what: "of a kept name", second: keepB.Mutex("kept"), first: func() {
			for before := keepA.Stats().Kept; keepA.Stats().Kept == before; uses++ {
				release(t, acquire(t, keepA.Mutex("kept")))
			}
		}},
	}
	rounds := long.Count(t, "ZKLOCK_RECALLS", 30, 150)
	for round := range rounds {
		for i := range turns {
			turn := &turns[i]
			turn.first()
			began := time.Now()
			l := acquire(t, turn.second)
			turn.took = append(turn.took, time.Since(began))
			release(t, l)
		}
		// The delete that lets the other client in is sent before the name is counted as given up.
		eventually(t, fmt.Sprintf("round %d: no name is kept after a recall", round), func() bool { return keepA.Stats().Kept == 0 })
	}
	for _, turn := range turns {
		slices.Sort(turn.took)
		p50, plain := turn.took[rounds/2], turns[0].took[rounds/2]
		t.Logf("acquire %s: p50 %v, %.2fx", turn.what, p50, float64(p50)/float64(plain))
	}
	t.Logf("the keeper needed %d uses for %d recalls", uses, rounds)
}
