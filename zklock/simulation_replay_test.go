package zklock_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A seed repeats its run: every request, every decision, every entry of the
// ensemble's log and every result, at the same virtual nanosecond. Nearly: where
// two cases of one select are ready at the same instant, the runtime draws lots,
// which nothing outside of it can mend; about one run in twenty-five comes to
// where that makes a difference. The race detector shuffles goroutines all the time.
func TestSimulationRepeatsItself(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector shuffles goroutines")
	}
	defer lonely()()
	runs := 200 // so that twice as many as usual are no accident
	if s := os.Getenv("ZKLOCK_REPLAYS"); s != "" {
		runs, _ = strconv.Atoi(s)
	}
	others := 0
	for seed := uint64(1); seed <= uint64(runs); seed++ {
		first := simulate(t, seed, newTally(), options{verbose: true})
		second := simulate(t, seed, newTally(), options{verbose: true})
		if first.trace != second.trace {
			others++
			t.Logf("seed %d went another way: %s", seed, divergence(first.trace, second.trace))
		}
		if seed%16 == 0 {
			runtime.GC()
		}
	}
	t.Logf("%d of %d runs repeated themselves to the nanosecond", runs-others, runs)
	if 10*others > runs {
		t.Errorf("%d of %d runs went another way the second time", others, runs)
	}
}

// divergence shows where two traces part.
func divergence(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			return "\n\t" + strings.Join(as[max(0, i-22):min(i+3, len(as))], "\n\t") + "\nor\n\t" + strings.Join(bs[max(0, i-22):min(i+3, len(bs))], "\n\t")
		}
	}
	return "one is longer"
}
