package model

import (
	"os"
	"strings"
	"testing"
	"time"
)

// The bounds of one exploration. ZKLOCK_MODEL is a duration: for so long in total the large
// configurations are explored, one after the other.
const (
	smallBound = 500_000 // more than any of them has
	raceBound  = 10_000
	guardBound = 3_000_000
	largeBound = 25_000_000 // needs up to 8 GB
)

// smallBounds are those of a configuration in every run.
func smallBounds() Bounds {
	if underRace {
		return Bounds{States: raceBound}
	}
	return Bounds{States: smallBound}
}

// largeBounds are those of one of several large configurations. The test is skipped if
// ZKLOCK_MODEL is not set.
func largeBounds(t *testing.T, of int) Bounds {
	t.Helper()
	text := os.Getenv("ZKLOCK_MODEL")
	if text == "" {
		t.Skip("ZKLOCK_MODEL is not set: make soak and make track-record set it")
	}
	total, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("ZKLOCK_MODEL: %v", err)
	}
	return Bounds{States: largeBound, For: total / time.Duration(of)}
}

// holds explores a system. No state may break an invariant.
func holds[S comparable](t *testing.T, sys System[S], b Bounds) Result {
	t.Helper()
	r := Explore(sys, b)
	t.Logf("%v; the system is %+v, the bounds are %+v", r, sys, b)
	if r.Violation != nil {
		t.Errorf("%v, after %d steps:\n%s", r.Violation, len(r.Trace), strings.Join(r.Trace, "\n"))
	}
	return r
}

// breaks explores a system without one of its guards, and must find a broken invariant.
func breaks[S comparable](t *testing.T, sys System[S]) {
	t.Helper()
	bound := guardBound
	if underRace {
		bound = raceBound
	}
	r := Explore(sys, Bounds{States: bound})
	if underRace && r.Violation == nil {
		t.Skipf("%v: the tests without the race detector go further", r)
	}
	if r.Violation == nil {
		t.Errorf("no counter-example: %v", r)
		return
	}
	t.Logf("a counter-example of %d steps, after %d states: %v\n%s", len(r.Trace), r.States, r.Violation, strings.Join(r.Trace, "\n"))
}
