package simulation

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
)

// The simulation runs clients of the real library on a model ensemble, in virtual time. It
// breaks the ensemble in every way that a real one can break. In each run it checks what must
// hold in all circumstances:
//
//   - exclusion, according to the ensemble's log: when a lock is granted, its node is in the
//     queue, with no contender ahead that excludes it; a valid handle has its node;
//   - exclusion, according to Valid: handles that are valid at one instant do not exclude
//     each other;
//   - exclusion, according to Done: a lock is granted only after the holders before were
//     notified that theirs is over;
//   - tokens rise, those of one client also when the ensemble has lost transactions, and a register that is guarded by Txn loses no update;
//   - when the faults end, every waiter gets its lock or an error within seconds;
//   - no node, watch, session or goroutine stays behind;
//   - a lost lock stays lost, and its loss is reported once;
//   - every error is a documented one, and calls return when they were asked to;
//   - what callers saw is the history of a mutex, of a reader-writer lock or of a
//     semaphore (see judge);
//   - a label that SetLabel has confirmed stays until the next one (see nodeLabel);
//   - max_contenders refuses those contenders that are too many, and no others (see asking).
//
// In runs where an operator also ends sessions before their time, no lease can promise
// anything. There the log and Txn have to hold, but Valid does not. In runs where an operator
// only deletes nodes, with Break or by hand, all of the above holds for all places but the
// broken ones, and their locks end soon (see breakup).
//
//	make simulate                                                             ten thousand runs, and the small cases
//	go test ./zklock/internal/simulation -run Simulation                      a few hundred runs
//	ZKLOCK_RUNS=10000 go test ./zklock/internal/simulation -run Simulation -v ten thousand, with a table of the faults
//	ZKLOCK_FOR=30m go test ./zklock/internal/simulation -run Simulation -v -timeout 0
//	ZKLOCK_SHIPPED=1 go test ./zklock/internal/simulation -run Simulation     all of them at the defaults, at distances of 0 to 250 ms
//	ZKLOCK_SEED=42 go test ./zklock/internal/simulation -run Simulation       one run; with ZKLOCK_RUNS, from 42 on
//
// A run that fails prints its seed and what was done. The seed repeats the run, but not
// under the race detector, which runs goroutines in random order.
func TestSimulation(t *testing.T) {
	first, runs, length := plan(t)
	defer corekit.SingleProcessor()()
	table := newTally()
	began, histories := time.Now(), 0
	n := 0
	for ; n < runs || time.Since(began) < length; n++ {
		out := simulate(t, first+uint64(n), table, options{})
		histories += out.histories
		if out.failed {
			t.FailNow()
		}
		if n%32 == 31 {
			runtime.GC()
		}
	}
	took := time.Since(began)
	t.Logf("%d runs from seed %d in %v, %.0f a second, %d locks acquired, %d places kept, %d labels confirmed, %d refused by max_contenders, %d granted on places that were broken before another grant, %d clients found that tokens went back, %d histories judged\n%v",
		n, first, took.Round(time.Millisecond), float64(n)/took.Seconds(), table.acquired, table.kept, table.labelled, table.refused, table.stale, table.regressed, histories, table)
	if n >= 1000 {
		table.complete(t)
		if histories < n/2 {
			t.Errorf("%d histories judged of %d runs: too few to prove anything", histories, n)
		}
	}
}

// plan reads the seed, the number of runs and their duration from the environment.
func plan(t *testing.T) (first uint64, runs int, length time.Duration) {
	first, runs = 1, 200
	var err error
	if s := os.Getenv("ZKLOCK_SEED"); s != "" {
		runs = 1
		if first, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("ZKLOCK_SEED: %v", err)
		}
	}
	if s := os.Getenv("ZKLOCK_FOR"); s != "" {
		runs = 0
		if first == 1 {
			first = uint64(time.Now().UnixNano()) >> 24 // another one each time
		}
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("ZKLOCK_FOR: %v", err)
		}
	}
	if s := os.Getenv("ZKLOCK_RUNS"); s != "" {
		if runs, err = strconv.Atoi(s); err != nil {
			t.Fatalf("ZKLOCK_RUNS: %v", err)
		}
	}
	return first, runs, length
}

// outcome is the result of one run.
type outcome struct {
	failed    bool
	histories int
	trace     string // of a verbose run
}

// options apply to a run whatever its seed is.
type options struct {
	verbose  bool // the trace records everything
	trusting bool // the clients are those with the faulty lock, see type trusting
	wire     bool // the clients' driver is zkdriver, over package wire
	shipped  bool // the settings are the defaults, and the servers are at a distance
	hush     bool // servers fall silent, and nothing else fails
}

// play executes one run.
func play(t *testing.T, seed uint64, table *tally, o options) *world {
	t.Helper()
	switch {
	case o.wire && hushed(seed):
		o.hush = true
		defer asUsers(seed)()
	case !o.trusting && (seed%24 == 5 || census.AsShipped()): // such a run takes as long as ten others
		o.shipped = true
		defer asShipped()()
	case o.wire && seed%3 == 0: // zkdriver's own times do not grow with the others
		defer lasting(5*usualTimeout, usualTimeout/2, usualTimeout/2, simConnect)()
	}
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, table, o)
		table.settings.Add(census.Settings{Tick: simTick, Session: simTimeout, Servers: w.p.servers, Distance: w.p.latency, Clients: w.p.clients, Name: len(w.name(0))})
		w.run(w.began.Add(w.p.length), nil)
		if len(w.recent) == 0 { // no fault so far, and every run has one
			w.inject()
			w.run(time.Now().Add(simTimeout), nil)
		}
		table.recovered(w, w.calm())
		w.close()
	})
	return w
}

// simulate executes one run and checks it.
func simulate(t *testing.T, seed uint64, table *tally, o options) (out outcome) {
	t.Helper()
	w := play(t, seed, table, o)
	defer w.model.forget()
	wrong, histories := w.model.judge()
	out.histories = histories
	wrong = append(w.model.violations, wrong...)
	if len(w.recent) == 0 {
		wrong = append(wrong, "no fault was injected, so the run proves nothing")
	}
	if o.verbose {
		out.trace = w.trace.String()
	}
	if len(wrong) > 0 {
		out.failed = true
		for _, v := range wrong {
			t.Errorf("seed %d: %s", seed, v)
		}
		t.Logf("schedule of seed %d:\n%v", seed, &w.trace)
	}
	return out
}
