package integration_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// TestRecallStormOfProcesses: this process keeps a name, and others want it at the same time.
func TestRecallStormOfProcesses(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "a hundred processes")
	e := trioOfServers(t)
	const name = "x"
	others := long.Count(t, "ZKLOCK_WAITERS", 99, 99)
	// A hundred processes may keep the keeper off the processors for longer than a short lease.
	params := quick("keep", "1h", "pool_max_sessions", "1", "session_timeout", "1m")
	url := func(server int) string {
		return "zk://" + e.Server(server%3).Addr() + rootOf(t) + "?" + params.Encode()
	}
	keeper, err := zklock.Open(url(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keeper.Close() })
	keepOn(t, keeper, name)
	l := acquire(t, keeper.Mutex(name))
	last := l.Token()
	release(t, l)

	guard := filepath.Join(t.TempDir(), "guard")
	var processes []*process
	for i := range others {
		p := startWorker(t, task{Role: "contend", Name: name, Rounds: 1, Guard: guard, URL: url(i + 1)})
		processes = append(processes, p)
		if i%10 == 9 || i == others-1 { // few start at the same time
			for _, p := range processes[i/10*10:] {
				p.await("ready")
			}
		}
	}
	if n := keeper.Stats().Kept; n != 1 {
		t.Fatalf("%d names are kept before the storm, want 1", n)
	}
	for _, p := range processes {
		p.start()
	}
	turns := make([]report, others)
	for i, p := range processes {
		turns[i] = p.await("gave")
		p.await("done")
	}
	slices.SortFunc(turns, func(a, b report) int { return cmp.Compare(a.From, b.From) })
	for i, turn := range turns {
		if i > 0 && turn.From < turns[i-1].At {
			t.Errorf("turn %d began %v before the turn before had ended", i, time.Duration(turns[i-1].At-turn.From))
		}
		if turn.Token.Compare(last) <= 0 {
			t.Errorf("turn %d: token %v after %v", i, turn.Token, last)
		}
		last = turn.Token
	}
	kept, left := keeper.Stats().Kept, contendersOf(t, keeper, name)
	t.Logf("%d processes had the lock in turn, %d nodes left", len(turns), left)
	if kept != 0 || left != 0 {
		t.Errorf("the keeper keeps %d names, and %d contenders are left, want 0", kept, left)
	}
}

// TestRecallStormOnServers: one of the clients on three servers keeps a name, and the others
// want it at the same time. In each round another one is the keeper.
func TestRecallStormOnServers(t *testing.T) {
	long.Parallel(t)
	e, rounds := trioOfServers(t), long.Count(t, "ZKLOCK_RECALLS", 3, 5)
	clients := long.Count(t, "ZKLOCK_WAITERS", 20, 100)
	all := make([]*zklock.Client, clients)
	for i := range all {
		all[i] = dial(t, e.Server(i%3).Addr(), quick("keep", "1h", "pool_max_sessions", "1"))
	}
	var holders, grants atomic.Int64
	var mu sync.Mutex
	var last zklock.Token
	for round := range rounds {
		keeper := all[round*37%clients]
		for uses := 0; keeper.Stats().Kept == 0; uses++ {
			if uses == 100 {
				t.Fatalf("round %d: the name is not kept after %d uses", round, uses)
			}
			release(t, acquire(t, keeper.Mutex("x")))
		}
		var others sync.WaitGroup
		for _, c := range all {
			if c == keeper {
				continue
			}
			others.Go(func() {
				l, err := c.Mutex("x").Acquire(within(t))
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("round %d: %d holders", round, n)
				}
				mu.Lock()
				if l.Token().Compare(last) <= 0 {
					t.Errorf("round %d: token %v after %v", round, l.Token(), last)
				}
				last = l.Token()
				mu.Unlock()
				grants.Add(1)
				holders.Add(-1)
				if err := l.Release(within(t)); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		others.Wait()
		if n := keeper.Stats().Kept; n != 0 {
			t.Errorf("round %d: the keeper keeps %d names after all others had the lock", round, n)
		}
	}
	t.Logf("%d recalls, %d grants, %d nodes left", rounds, grants.Load(), contendersOf(t, all[0], "x"))
	if n := contendersOf(t, all[0], "x"); n != 0 || int(grants.Load()) != rounds*(clients-1) {
		t.Errorf("%d grants and %d contenders left, want %d and 0", grants.Load(), n, rounds*(clients-1))
	}
}
