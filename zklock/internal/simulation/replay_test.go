package simulation

import (
	"runtime"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// A seed repeats its run: every request, every decision, every entry of the ensemble's log
// and every result, at the same virtual nanosecond. There is one exception. Where two
// cases of a select are ready at the same instant, the runtime chooses one at random, and
// no program can change that. This makes a difference in about one run of twenty-five. The
// race detector always runs goroutines in random order.
func TestSimulationRepeatsItself(t *testing.T) {
	long.Test(t, "two hundred runs are repeated")
	if corekit.Race {
		t.Skip("the race detector runs goroutines in random order")
	}
	defer corekit.SingleProcessor()()
	const many = 200 // enough that twice the usual number of differences cannot be chance
	runs := long.Count(t, "ZKLOCK_REPLAYS", many, many)
	others := 0
	for seed := uint64(1); seed <= uint64(runs); seed++ {
		first := simulate(t, seed, newTally(), options{verbose: true})
		second := simulate(t, seed, newTally(), options{verbose: true})
		if first.trace != second.trace {
			others++
			t.Logf("seed %d differs: %s", seed, divergence(first.trace, second.trace))
		}
		if seed%16 == 0 {
			runtime.GC()
		}
	}
	t.Logf("%d of %d runs were the same the second time, to the nanosecond", runs-others, runs)
	if 10*others > runs {
		t.Errorf("%d of %d runs were different the second time, want at most a tenth", others, runs)
	}
}

// divergence returns the lines around the first difference of two traces.
func divergence(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			return "\n\t" + strings.Join(as[max(0, i-22):min(i+3, len(as))], "\n\t") + "\nor\n\t" + strings.Join(bs[max(0, i-22):min(i+3, len(bs))], "\n\t")
		}
	}
	return "one trace is longer"
}
