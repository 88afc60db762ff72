package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

// load says how a lock that carries a few callers gets many of them for a while, and a few again.
// Each caller waits for a limited time, and comes again at once when it was refused.
type load struct {
	wait     time.Duration // the time limit of each caller
	work     time.Duration // how long a caller has the lock
	calm     int           // the callers before and after the overload
	arrivals bool          // callers come once, so many a second, instead of again and again
	turns    [3]int        // how many of the turn's lengths, which are seconds by default, each phase takes
}

// loadRounds bounds the rounds of a workload with a load: its turns are long.
const loadRounds = 3

// usual is the load of most rows; fast is its short form.
var usual, fast = [3]int{3, 6, 3}, [3]int{3, 3, 1}

// rowOverload begins the names of these workloads.
const rowOverload = "overload: "

// overloads returns the workloads of results-overload.md.
func overloads(turns [3]int) (all []row) {
	for _, o := range []struct {
		kind    string
		callers int
		wait    time.Duration
		peers   []string
	}{
		{worker.Mutex, 100, 20 * time.Millisecond, []string{curator, etcd, redsync}},
		{worker.Mutex, 1000, 100 * time.Millisecond, []string{curator, etcd, redsync}},
		{worker.Mutex, 1000, time.Second, []string{curator, etcd, redsync}},
		{worker.Semaphore, 100, 50 * time.Millisecond, []string{curator}},
		{worker.Semaphore, 1000, 100 * time.Millisecond, []string{curator}},
	} {
		what := o.kind
		if n := worker.Permits[o.kind]; n > 0 {
			what = fmt.Sprintf("%s of %d", o.kind, n)
		}
		all = append(all, overload(what, o.kind, o.callers, load{wait: o.wait, work: 20 * time.Millisecond, calm: 3, turns: turns}, o.peers...))
	}
	return all
}

// shortOverloads returns the workloads of make bench.
func shortOverloads() []row {
	return slices.DeleteFunc(overloads(fast), func(r row) bool { return r.goroutines > 100 })
}

func overload(what, kind string, callers int, l load, peers ...string) row {
	r := row{
		name: fmt.Sprintf("%s%s, %d callers, waits of %v", rowOverload, what, callers, l.wait),
		kind: kind, processes: 1, goroutines: callers, load: &l, lead: defaults, peers: peers,
		targets: []target{{of: defaults, figure: "lowest", least: .5, unit: "lowest second of the overload / calm second"}},
	}
	if l.arrivals {
		r.name = fmt.Sprintf("%s%s, %d arrivals a second, waits of %v", rowOverload, what, callers, l.wait)
	}
	return r
}

// load measures a turn of a workload with a load.
func (b *runner) load(who string, t team, r row, name string, length time.Duration) (figures, error) {
	mark := ""
	if r.load.arrivals {
		mark = "@"
	}
	command := fmt.Sprintf("load %s %s %d %d %d", r.kind, name, r.load.wait.Milliseconds(), r.load.work.Milliseconds(), length.Milliseconds())
	turns := 0
	for i, n := range []int{r.load.calm, r.goroutines, r.load.calm} {
		command += fmt.Sprintf(" %s%dx%d", mark, n, r.load.turns[i]*int(length.Milliseconds()))
		turns += r.load.turns[i]
	}
	warm := fmt.Sprintf("cycles %s 8 %s %s-warm %d", worker.Mutex, worker.Own, name, length.Milliseconds())
	if _, err := t[0].work(warm, 2*length); err != nil {
		return nil, err
	}
	line, err := t[0].work(command, time.Duration(turns)*length)
	if err != nil {
		return nil, err
	}
	f, err := parseFigures(line)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t[0].name, err)
	}
	if n := f["failed"]; n > 0 {
		b.say("%s: %s: %.0f calls failed long before the end of their wait", r.name, who, n)
	}
	maps.Copy(f, goodput(f.grants(), r.load.turns, length))
	return f, nil
}

// grants returns the grants of each length of a turn.
func (f figures) grants() (counts []float64) {
	for {
		n, ok := f[worker.GrantsKey(len(counts))]
		if !ok {
			return counts
		}
		counts = append(counts, n)
	}
}

// goodput compares the grants of each second during an overload, and of the second after it, with
// the median of those before. The first second, in which the callers begin, does not count.
func goodput(grants []float64, turns [3]int, length time.Duration) figures {
	f := figures{}
	for _, n := range grants {
		f["total"] += n
	}
	calm, over, again := grants[1:turns[0]], grants[turns[0]:turns[0]+turns[1]], grants[turns[0]+turns[1]]
	usually := median(calm)
	f["calm"] = usually / length.Seconds()
	if usually > 0 {
		f["lowest"], f["middle"], f["after"] = slices.Min(over)/usually, median(over)/usually, again/usually
	}
	return f
}

// loadMethod describes how goodput is measured.
func (b *runner) loadMethod() string {
	l := overloads(usual)[0].load
	return fmt.Sprintf("medians of %d turns, after %v of warming up: %d callers for %v, many for %v, %d again for %v. Each waits for a limited time, has the lock for %v, and comes again at once, also when it was refused",
		min(b.rounds, loadRounds), b.warmed, l.calm, time.Duration(l.turns[0])*b.length, time.Duration(l.turns[1])*b.length, l.calm, time.Duration(l.turns[2])*b.length, l.work)
}

// goodputs returns the table of workloads with a load.
func goodputs(results []result) table {
	t := table{head: []string{"workload", "library", "calm: grants/s", "overload: lowest second", "median second", "the second after"}}
	for _, res := range results {
		for i, who := range res.Who {
			name := res.Row
			if i > 0 {
				name = ""
			}
			line := []string{name, who, fmt.Sprintf("%.0f", res.median(who, "calm"))}
			for _, figure := range []string{"lowest", "middle", "after"} {
				cell := ""
				if res.has(who, figure) {
					cell = fmt.Sprintf("%.0f%%", 100*res.median(who, figure))
				}
				line = append(line, cell)
			}
			t.lines = append(t.lines, line)
		}
	}
	return t
}
