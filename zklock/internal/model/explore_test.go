package model

import (
	"fmt"
	"strings"
	"testing"
)

// jugs is a system whose ways are known: two jugs of 3 litres and one of 5.
type jugs struct{ forbidden int8 }

func (jugs) Initial() [][3]int8 { return [][3]int8{{}} }

func (jugs) Next(s [3]int8, emit func(Step, [3]int8)) {
	size := [3]int8{3, 3, 5}
	for i := range s {
		full, empty := s, s
		full[i], empty[i] = size[i], 0
		emit(Step{What: 0}, full)
		emit(Step{What: 1}, empty)
		for j := range s {
			if i != j {
				to, n := s, min(s[i], size[j]-s[j])
				to[i], to[j] = s[i]-n, s[j]+n
				emit(Step{What: 2, Arg: int8(j)}, to)
			}
		}
	}
}

func (j jugs) Check(s [3]int8) error {
	if s[2] == j.forbidden {
		return fmt.Errorf("the large jug has %d litres", s[2])
	}
	return nil
}

func (jugs) Describe(_ [3]int8, step Step, to [3]int8) string {
	return fmt.Sprintf("%s %d: %v", []string{"fill", "empty", "pour"}[step.What], step.Arg, to)
}

func TestExploreFindsTheShortestWay(t *testing.T) {
	r := Explore(jugs{forbidden: 4}, Bounds{})
	if r.Violation == nil || len(r.Trace) != 5 {
		t.Errorf("%v, %v: the violation needs 5 steps:\n%s", r, r.Violation, strings.Join(r.Trace, "\n"))
	}
	if last := r.Trace[len(r.Trace)-1]; !strings.Contains(last, " 4]") {
		t.Errorf("the trace ends with %q, not with the violation", last)
	}
}

func TestExploreVisitsEachStateOnce(t *testing.T) {
	r := Explore(jugs{forbidden: -1}, Bounds{})
	reached := map[[3]int8]bool{{}: true}
	for todo := [][3]int8{{}}; len(todo) > 0; {
		s := todo[0]
		todo = todo[1:]
		jugs{}.Next(s, func(_ Step, to [3]int8) {
			if !reached[to] {
				reached[to] = true
				todo = append(todo, to)
			}
		})
	}
	if r.States != len(reached) || !r.Complete || r.Violation != nil {
		t.Errorf("%v, %v; want %d states, all of them", r, r.Violation, len(reached))
	}
}

func TestExploreStopsAtItsBounds(t *testing.T) {
	r := Explore(jugs{forbidden: -1}, Bounds{States: 10})
	if all := Explore(jugs{forbidden: -1}, Bounds{}); r.Complete || r.States < 10 || r.States >= all.States {
		t.Errorf("%v, of %v", r, all)
	}
}

// endless has a new state after each state.
type endless struct{}

func (endless) Initial() []uint64                      { return []uint64{0} }
func (endless) Next(s uint64, emit func(Step, uint64)) { emit(Step{}, 2*s+1); emit(Step{}, 2*s+2) }
func (endless) Check(uint64) error                     { return nil }
func (endless) Describe(uint64, Step, uint64) string   { return "" }

// The time is up before the first state is explored, or while the states of a layer are.
func TestExploreStopsInTime(t *testing.T) {
	if r := Explore(endless{}, Bounds{For: 1}); r.Complete || r.States != 1 {
		t.Errorf("%v; want one state, since no time was left", r)
	}
	if r := Explore(endless{}, Bounds{For: 1_000_000, States: 1 << 24}); r.Complete || r.States >= 1<<24 {
		t.Errorf("%v; want fewer states, since the time was up", r)
	}
}

func TestSetGrows(t *testing.T) {
	s := newSet()
	const many = 100_000
	for i := range uint64(many) {
		if !s.add(i*0x9E3779B97F4A7C15, none) || s.add(i*0x9E3779B97F4A7C15, none) {
			t.Fatalf("hash %d was added never, or twice", i)
		}
	}
	if s.len() != many {
		t.Errorf("%d hashes, want %d", s.len(), many)
	}
}
