package integration_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

const (
	cutProcesses  = 2
	cutGoroutines = 8

	// longestDelay is the longest delay that a cut may cause for a caller. The cut takes no time:
	// connections are reset and can be made again at once.
	longestDelay = time.Second
)

// chaosLength returns how long the chaos test makes faults: the value of ZKLOCK_CHAOS. If
// that is not set, the test is skipped; make chaos sets it.
func chaosLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ZKLOCK_CHAOS")
	if text == "" {
		t.Skip("ZKLOCK_CHAOS is not set: run this test with make chaos")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return length
}

// TestThroughputUnderCuts resets all connections again and again while two processes pass a
// lock to each other. Callers must not notice more than a moment's delay. A delay that the library
// causes happens at every cut, and one that a stall of the machine causes happens at one or a few
// cuts in a row. So most cuts must keep to the limit. For comparison,
// the same is done in the same run with kazoo, the best of the other libraries here.
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
			ours, times := cycleUnderCuts(t, p, c.every, c.length)
			cuts := len(times)
			if cuts == 0 {
				t.Fatal("no cut")
			}
			delays := delaysAt(times, ours.Slow)
			theirs := kazooUnderCuts(t, p, c.every, c.length)
			rate := func(n int) float64 { return float64(n) / c.length.Seconds() }
			t.Logf("zklock: %d cuts, %.0f cycles/s, %d of %d with a new place in the queue, longest %v, %d reconnects, %d sessions lost, errors: %q",
				cuts, rate(ours.Cycles), ours.Places, ours.Cycles, ours.Longest, ours.Reconnects, ours.SessionsLost, ours.Errors)
			t.Logf("kazoo: %.0f cycles/s, longest %v, %d errors, %d threads hung", rate(theirs.cycles), theirs.longest, theirs.errors, theirs.hung)
			t.Logf("the delays at the cuts: %v", delays)
			if len(ours.Errors) > 0 || ours.SessionsLost > 0 {
				t.Errorf("callers got the errors %q, and %d sessions were lost, want none", ours.Errors, ours.SessionsLost)
			}
			if median := delays[(cuts-1)/2]; median > longestDelay {
				t.Errorf("most cuts delayed a caller for %v or longer, want at most %v", median, longestDelay)
			}
			if theirs.cycles == 0 {
				t.Errorf("kazoo completed no cycle: nothing to compare with")
			}
			if rate(ours.Cycles) < 2*rate(theirs.cycles) {
				t.Errorf("%.0f cycles/s, kazoo %.0f: want at least twice as many", rate(ours.Cycles), rate(theirs.cycles))
			}
			if ours.Places < cuts/2 || ours.Reconnects < uint64(cuts) {
				t.Errorf("%d places and %d reconnects in %d cuts, want a new place after every other cut at least, and a reconnect after each: the processes hardly contended, or were not cut off", ours.Places, ours.Reconnects, cuts)
			}
		})
	}
}

// delaysAt returns the longest turn that was under way at each cut, the shortest first. It is 0 if
// all turns were short.
func delaysAt(cuts []int64, slow []turn) (delays []time.Duration) {
	for _, at := range cuts {
		var longest time.Duration
		for _, s := range slow {
			if s.Began <= at && at < s.Ended {
				longest = max(longest, time.Duration(s.Ended-s.Began))
			}
		}
		delays = append(delays, longest)
	}
	slices.Sort(delays)
	return delays
}

// cut resets all connections at intervals until done, and returns the times of the resets.
func cut(p *proxy.Proxy, every time.Duration, done <-chan struct{}) (cuts []int64) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			cuts = append(cuts, monotonic())
			p.KillConns()
		case <-done:
			return cuts
		}
	}
}

func cycleUnderCuts(t *testing.T, p *proxy.Proxy, every, length time.Duration) (sum cycleReport, cuts []int64) {
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
	counted := make(chan []int64)
	go func() { counted <- cut(p, every, over) }()
	defer func() { cuts = <-counted }()
	defer close(over)
	for _, w := range workers {
		sum.add(*w.await("cycled").Cycle)
	}
	return sum, nil
}

// kazooFigures are the figures that the kazoo processes report.
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
		peer.send("cycle /kazoo-%d %d %g", int(every.Milliseconds()), cutGoroutines, length.Seconds())
	}
	over := make(chan struct{})
	counted := make(chan []int64)
	go func() { counted <- cut(p, every, over) }()
	for _, peer := range peers {
		answer := receive(t, "kazoo's figures", peer.answers)
		var f kazooFigures
		var longest int
		if _, err := fmt.Sscanf(answer, "cycles %d errors %d longest %d hung %d", &f.cycles, &f.errors, &longest, &f.hung); err != nil {
			t.Errorf("kazoo answered %q: %v", answer, err)
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
