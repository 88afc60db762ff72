package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/census"
)

// tally counts the faults of all runs, by kind, and their consequences. A lock that is
// lost, or an overlap, counts for the fault that struck last.
type tally struct {
	acquired  int
	kept      int // releases that kept the place
	labelled  int // labels that were confirmed
	refused   int // acquisitions that max_contenders refused
	regressed int // clients that found that tokens went back
	settings  census.Census
	stale     int      // grants of broken places with a token less than another client's
	kinds     []string // in the order of the table
	rows      map[string]*row
}

type row struct {
	injected int
	lost     int
	overlaps int           // violations of exclusion
	slowest  time.Duration // longest time from the end of all faults until all workers were served, in runs that had this kind near the end
}

func newTally() *tally {
	t := &tally{rows: map[string]*row{"none": {}}}
	t.kinds = append(t.kinds, requestFaults...)
	for _, k := range t.kinds {
		t.rows[k] = &row{}
	}
	t.add(breakages)
	return t
}

// add adds the rows of kinds of faults.
func (t *tally) add(kinds []breakage) {
	for _, b := range kinds {
		t.kinds = append(t.kinds, b.kind)
		t.rows[b.kind] = &row{}
	}
}

func (t *tally) row(kind string) *row {
	if r := t.rows[kind]; r != nil {
		return r
	}
	return t.rows["none"]
}

func (t *tally) injected(kind string)   { t.row(kind).injected++ }
func (t *tally) lost(kind string)       { t.row(kind).lost++ }
func (t *tally) overlapped(kind string) { t.row(kind).overlaps++ }

// recovered records how long it took from the end of the faults until all workers were
// served.
func (t *tally) recovered(w *world, took time.Duration) {
	t.acquired += len(w.model.all)
	for kind, at := range w.recent {
		if time.Since(at) < took+simTimeout {
			r := t.row(kind)
			r.slowest = max(r.slowest, took)
		}
	}
}

// String returns the table.
func (t *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s %9s %7s %9s %10s\n", "kind of fault", "injected", "lost", "overlaps", "recovered")
	var sum row
	for _, k := range append(slices.Clone(t.kinds), "none") {
		r := t.rows[k]
		if k == "none" && *r == (row{}) {
			continue
		}
		fmt.Fprintf(&b, "%-26s %9d %7d %9d %10v\n", k, r.injected, r.lost, r.overlaps, r.slowest.Round(time.Millisecond))
		sum.injected += r.injected
		sum.lost += r.lost
		sum.overlaps += r.overlaps
		sum.slowest = max(sum.slowest, r.slowest)
	}
	fmt.Fprintf(&b, "%-26s %9d %7d %9d %10v\n", "all", sum.injected, sum.lost, sum.overlaps, sum.slowest.Round(time.Millisecond))
	fmt.Fprintln(&b, &t.settings)
	return b.String()
}

// complete checks that every kind of fault was injected, and that locks were lost.
func (t *tally) complete(tb *testing.T) {
	tb.Helper()
	lost := 0
	for _, k := range t.kinds {
		if t.rows[k].injected == 0 {
			tb.Errorf("the fault %q was injected in no run", k)
		}
		lost += t.rows[k].lost
	}
	if lost == 0 {
		tb.Error("no lock was ever lost: the faults are too mild")
	}
	if t.regressed == 0 {
		tb.Error("no client has found that tokens went back")
	}
	if t.kept == 0 {
		tb.Error("no place was ever kept")
	}
	if t.labelled == 0 || t.refused == 0 {
		tb.Errorf("%d labels were confirmed, and max_contenders refused %d acquisitions", t.labelled, t.refused)
	}
}
