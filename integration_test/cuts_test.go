package integration_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/integration_test/proxy"
)

const (
	cutProcesses  = 2
	cutGoroutines = 8

	// longestStall is what a cut may cost a caller at most. The cut itself
	// takes no time: connections are reset and can be made again at once.
	longestStall = time.Second
)

// chaosLength is for how long the chaos test makes faults: as long as
// ZKLOCK_CHAOS says. Without it the test is skipped, see make chaos.
func chaosLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ZKLOCK_CHAOS")
	if text == "" {
		t.Skip("ZKLOCK_CHAOS is not set: make chaos sets it")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return length
}

// TestThroughputUnderCuts resets all connections again and again while two
// processes hand a lock to each other: callers notice nothing but a moment's
// delay. kazoo, the best of the other libraries here, does the same in the same
// run, for comparison.
func TestThroughputUnderCuts(t *testing.T) {
	chaosLength(t)
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{TickTime: 2 * time.Second})
	p, err := proxy.New(zk.Hosts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	for _, c := range []struct{ every, length time.Duration }{
		{2 * time.Second, 9 * time.Second},
		{300 * time.Millisecond, 6 * time.Second},
	} {
		t.Run(c.every.String(), func(t *testing.T) {
			ours, cuts := cycleUnderCuts(t, p, c.every, c.length)
			theirs := kazooUnderCuts(t, p, c.every, c.length)
			rate := func(n int) float64 { return float64(n) / c.length.Seconds() }
			t.Logf("zklock: %d cuts, %.0f cycles/s, %d of %d with a place of their own, longest %v, %d reconnects, %d sessions lost, errors: %q",
				cuts, rate(ours.Cycles), ours.Places, ours.Cycles, ours.Longest, ours.Reconnects, ours.SessionsLost, ours.Errors)
			t.Logf("kazoo: %.0f cycles/s, longest %v, %d errors, %d threads hung", rate(theirs.cycles), theirs.longest, theirs.errors, theirs.hung)
			if len(ours.Errors) > 0 || ours.SessionsLost > 0 {
				t.Errorf("errors reached callers, or sessions were lost")
			}
			if ours.Longest > longestStall {
				t.Errorf("a caller was held up for %v, want at most %v", ours.Longest, longestStall)
			}
			if theirs.cycles == 0 {
				t.Errorf("kazoo got nothing done: there is nothing to compare with")
			}
			if rate(ours.Cycles) < 2*rate(theirs.cycles) {
				t.Errorf("%.0f cycles/s, kazoo %.0f: want at least twice as many", rate(ours.Cycles), rate(theirs.cycles))
			}
			if ours.Places < cuts || ours.Reconnects < uint64(cuts) {
				t.Errorf("%d places, %d reconnects in %d cuts: the lock hardly went from process to process, or was not cut off", ours.Places, ours.Reconnects, cuts)
			}
		})
	}
}

// cut resets all connections at intervals until done, and returns how often.
func cut(p *proxy.Proxy, every time.Duration, done <-chan struct{}) (cuts int) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.KillConns()
			cuts++
		case <-done:
			return cuts
		}
	}
}

func cycleUnderCuts(t *testing.T, p *proxy.Proxy, every, length time.Duration) (sum cycleReport, cuts int) {
	t.Helper()
	var workers []*process
	for range cutProcesses {
		workers = append(workers, startWorker(t, task{Role: "cycle", Name: "cut", For: length, Goroutines: cutGoroutines,
			URL: ensemble.URL(p.Addr(), rootOf(t), keys("session_timeout", "10s", "tick_time", "2s"))}))
	}
	for _, w := range workers {
		w.await("ready")
	}
	for _, w := range workers {
		w.start()
	}
	over := make(chan struct{})
	counted := make(chan int)
	go func() { counted <- cut(p, every, over) }()
	defer func() { cuts = <-counted }()
	defer close(over)
	for _, w := range workers {
		sum.add(*w.await("cycled").Cycle)
	}
	return sum, 0
}

// kazooFigures is what kazoo did.
type kazooFigures struct {
	cycles, errors, hung int
	longest              time.Duration
}

func kazooUnderCuts(t *testing.T, p *proxy.Proxy, every, length time.Duration) (sum kazooFigures) {
	t.Helper()
	peers := kazooPeers(t, cutProcesses, p.Addr())
	for _, peer := range peers {
		peer.expect(t, "ready")
	}
	for _, peer := range peers {
		peer.tell("cycle /kazoo-%d %d %g", int(every.Milliseconds()), cutGoroutines, length.Seconds())
	}
	over := make(chan struct{})
	counted := make(chan int)
	go func() { counted <- cut(p, every, over) }()
	for _, peer := range peers {
		answer := receive(t, "kazoo's figures", peer.answers)
		var f kazooFigures
		var longest int
		if _, err := fmt.Sscanf(answer, "cycles %d errors %d longest %d hung %d", &f.cycles, &f.errors, &longest, &f.hung); err != nil {
			t.Errorf("kazoo says %q: %v", answer, err)
		}
		sum.cycles += f.cycles
		sum.errors += f.errors
		sum.hung += f.hung
		sum.longest = max(sum.longest, time.Duration(longest)*time.Millisecond)
	}
	close(over)
	<-counted
	return sum
}
