package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// rounds goes round the suites until the time is over. It runs in lanes, one run in each at a time: the
// first lane takes the suites that keep the processors busy, and the others take those that mostly wait.
type rounds struct {
	suites []suite
	ledger *ledger
	each   time.Duration // the length of a run of a suite without a length of its own
	until  time.Time
	commit string
	run    func(ctx context.Context, s suite, length time.Duration, seed int64) (outcome, error)
	wrote  func() error // called after each run

	mu      sync.Mutex
	running []string // the suites under way; guarded by mu
	tried   []string // the suites without a length that have run since the start; guarded by mu
	bad     int      // runs that failed; guarded by mu
}

// serve runs the lanes. It returns the first error of one, which ends the others.
func (r *rounds) serve(ctx context.Context, waiting int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var lanes sync.WaitGroup
	for lane := range 1 + waiting {
		lanes.Go(func() {
			if err := r.lane(ctx, lane, waiting > 0); err != nil {
				cancel(err)
			}
		})
	}
	lanes.Wait()
	return context.Cause(ctx)
}

func (r *rounds) lane(ctx context.Context, lane int, apart bool) error {
	for time.Now().Before(r.until) && ctx.Err() == nil {
		s, err := r.take(func(s suite) bool { return !apart || s.waits == (lane > 0) })
		if s == nil || err != nil {
			return err
		}
		err = r.one(ctx, *s)
		r.mu.Lock()
		r.running = slices.DeleteFunc(r.running, func(name string) bool { return name == s.name })
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// one runs a suite once, and adds the run to the ledger. A run that is interrupted leaves nothing there.
func (r *rounds) one(ctx context.Context, s suite) error {
	seed := time.Now().UnixMilli() // more than a suite has seeds in a run lie between two runs
	o, err := r.run(ctx, s, r.each, seed)
	if err != nil {
		return err
	}
	if o.failed != "" || o.counts[violations] > 0 {
		r.mu.Lock()
		r.bad++
		r.mu.Unlock()
	}
	if err := r.ledger.add(entryOf(o, r.commit, machine(), seed)); err != nil {
		return err
	}
	return r.wrote()
}

// take chooses the suite of a lane that is furthest behind its share of the minutes in the ledger, and
// marks it as running. Without one it returns nil.
func (r *rounds) take(fits func(suite) bool) (*suite, error) {
	entries, err := readLedger(r.ledger.path)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var least *suite
	for _, s := range r.suites {
		if !fits(s) || slices.Contains(r.running, s.name) || s.once && (slices.Contains(r.tried, s.name) || hasRun(entries, s, r.commit)) {
			continue
		}
		if least == nil || minutes(entries, s)/float64(s.share) < minutes(entries, *least)/float64(least.share) {
			least = &s
		}
	}
	if least != nil {
		r.running, r.tried = append(r.running, least.name), append(r.tried, least.name)
	}
	return least, nil
}

// minutes is how long a suite has run.
func minutes(entries []entry, s suite) (sum float64) {
	for _, e := range entries {
		if e.Suite == s.name {
			sum += e.Minutes
		}
	}
	return sum
}

// hasRun reports whether a suite has run at a commit. It would do the same again.
func hasRun(entries []entry, s suite, commit string) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return e.Suite == s.name && e.Commit == commit && e.Runs > 0 })
}

// failures is an error if runs failed.
func (r *rounds) failures() error {
	if r.bad > 0 {
		return fmt.Errorf("%d runs failed: what they printed is in %s", r.bad, logs)
	}
	return nil
}
