package model

import (
	"testing"
)

// fleets are small configurations of a semaphore.
var fleets = []struct {
	name   string
	sys    Semaphores
	states int // how many it has: that does not depend on the machine
}{
	{"three numbers", Semaphores{Contenders: 4, Numbers: []int8{1, 2, 3}}, 120791},
	{"old clients", Semaphores{Contenders: 4, Numbers: []int8{1, 2}, Old: true}, 60701},
	{"old clients, larger numbers", Semaphores{Contenders: 4, Numbers: []int8{2, 3}, Old: true}, 139572},
	{"more contenders", Semaphores{Contenders: 5, Numbers: []int8{3, 4}}, 753845},
	{"windows", Semaphores{Contenders: 6, Numbers: []int8{2}, Window: 3}, 311587},
	{"windows, two numbers", Semaphores{Contenders: 5, Numbers: []int8{1, 2}, Window: 2}, 511874},
	{"windows, old clients", Semaphores{Contenders: 5, Numbers: []int8{2}, Old: true, Window: 2}, 123299},
}

func TestPermitsOfChangingNumbers(t *testing.T) {
	for _, c := range fleets {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := Bounds{States: 2 * c.states}
			if underRace {
				b.States = raceBound
			}
			r := holds(t, c.sys, b)
			if underRace || t.Failed() {
				return
			}
			if (!r.Complete || r.States != c.states) && !testing.Short() { // in the mutants' runs, which have -short, only a broken invariant counts
				t.Errorf("%v; want all of %d states", r, c.states)
			}
		})
	}
}

// Where none comes, leaves or is replaced, the clients' own steps end in a state of rest, in each order: they make no circle. For a
// place that comes again each time that it looks, they do not end.
func TestPermitsComeToRest(t *testing.T) {
	for _, c := range fleets[:2] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if underRace && c.states > raceBound {
				t.Skip("too many states for the race detector")
			}
			own := func(s Step) bool { return s.What == permitLooks || s.What == permitIsMarked }
			if states, circle := Circle(c.sys, own); circle != nil || states != c.states {
				t.Errorf("%d states, want %d; steps that come back: %q", states, c.states, circle)
			}
			c.sys.Without = ComesAgainOnce
			if _, circle := Circle(c.sys, own); circle == nil {
				t.Error("a place that comes again and again has come to rest")
			}
		})
	}
}

func TestPermitGuardsAreNeeded(t *testing.T) {
	for _, c := range []struct {
		name    string
		without PermitGuard
	}{
		{"the node shows a grant by the count", CountIsShown},
		{"no more contenders than permits", CountOfAtMost},
		{"the one that is replaced had its turn", CountAfterTurn},
		{"it comes again", ComesAgain},
		{"a mark behind one that asks for fewer", MarksBehindFewer},
		{"one that is marked is watched again", MarkedIsWatched},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			breaks(t, Semaphores{Contenders: 5, Numbers: []int8{3, 4}, Window: 2, Without: c.without})
		})
	}
}
