package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

// Step is one step of a system: what happens, and a detail.
type Step struct {
	What uint8
	Arg  int8
}

// System is a transition system. Its states are values that can be compared.
type System[S comparable] interface {
	// Initial returns the states to begin with.
	Initial() []S

	// Next calls emit for each step that is possible in a state, with the state after it.
	Next(s S, emit func(Step, S))

	// Check returns an error if a state breaks an invariant.
	Check(s S) error

	// Describe returns a step from one state to the next in words.
	Describe(from S, step Step, to S) string
}

// Bounds limit an exploration; zero values limit nothing.
type Bounds struct {
	States int           // new states are not explored beyond that number
	For    time.Duration // no state is explored after that time
}

// Result is the outcome of an exploration.
type Result struct {
	States   int  // found
	Steps    int  // taken, including those that lead to a known state
	Depth    int  // the longest of the shortest ways to a state
	Complete bool // every state that can be reached was explored
	Took     time.Duration

	Violation error    // of the first state found that breaks an invariant; nil: none does
	Trace     []string // the steps to that state; there is no shorter way to a violation
}

// String returns the figures of a result in one line.
func (r Result) String() string {
	extent := "all states"
	if !r.Complete {
		extent = "not all states"
	}
	return fmt.Sprintf("%d states, %d steps, depth %d, %s, %v", r.States, r.Steps, r.Depth, extent, r.Took.Round(10*time.Millisecond))
}

// Explore visits the states of a system, nearest first, until one breaks an invariant or the
// bounds are reached. Only hashes of 64 bits are kept of the states that were visited: of ten
// million states, two have the same hash with a probability of 3 in a million.
func Explore[S comparable](sys System[S], b Bounds) Result {
	began := time.Now()
	r := Result{Complete: true}
	known := newSet()
	seed := maphash.MakeSeed()
	var layer, next []S
	first := uint32(0) // the number of the layer's first state
	find := func(s S, from uint32) {
		if known.add(maphash.Comparable(seed, s), from) {
			next = append(next, s)
		}
	}
	stop := func(number uint32, err error) Result {
		r.Violation, r.States, r.Took = err, known.len(), time.Since(began)
		r.Trace = trace(sys, known.way(number), func(s S) uint64 { return maphash.Comparable(seed, s) })
		return r
	}
	for _, s := range sys.Initial() {
		find(s, none)
	}
	for ; len(next) > 0; r.Depth++ {
		first += uint32(len(layer))
		layer, next = next, layer[:0:0]
		for i, s := range layer {
			number := first + uint32(i)
			if err := sys.Check(s); err != nil {
				return stop(number, err)
			}
			if b.States > 0 && known.len() >= b.States || b.For > 0 && i%1024 == 0 && time.Since(began) >= b.For {
				r.Complete = false
			}
			if !r.Complete {
				continue // the states that were found are still checked
			}
			sys.Next(s, func(_ Step, to S) {
				r.Steps++
				find(to, number)
			})
		}
	}
	r.Depth--
	r.States, r.Took = known.len(), time.Since(began)
	return r
}

// trace describes the steps of a way, which is given by the hashes of its states.
func trace[S comparable](sys System[S], way []uint64, hash func(S) uint64) (lines []string) {
	var at S
	for _, s := range sys.Initial() {
		if hash(s) == way[0] {
			at = s
			break
		}
	}
	for i, want := range way[1:] {
		from, found := at, false
		sys.Next(from, func(step Step, to S) {
			if !found && hash(to) == want {
				found, at = true, to
				lines = append(lines, fmt.Sprintf("%3d. %s", i+1, sys.Describe(from, step, to)))
			}
		})
	}
	return lines
}

// Circle returns how many states a system has, and a circle of steps that are of the system itself, described; nil if there is none. Then
// these steps end in a state of rest, whichever is taken first, unless other steps come between.
func Circle[S comparable](sys System[S], own func(Step) bool) (states int, circle []string) {
	const onTheWay, ends = 1, 2
	known := make(map[S]uint8)
	all := sys.Initial()
	for i := 0; i < len(all); i++ {
		sys.Next(all[i], func(_ Step, to S) {
			if _, found := known[to]; !found {
				known[to] = 0
				all = append(all, to)
			}
		})
	}
	var follow func(s S) bool
	follow = func(s S) (comesBack bool) {
		known[s] = onTheWay
		sys.Next(s, func(step Step, to S) {
			if comesBack || !own(step) || known[to] == ends {
				return
			}
			if comesBack = known[to] == onTheWay || follow(to); comesBack {
				circle = append(circle, sys.Describe(s, step, to))
			}
		})
		known[s] = ends
		return comesBack
	}
	for _, s := range all {
		if known[s] != ends && follow(s) {
			slices.Reverse(circle)
			return len(known), circle
		}
	}
	return len(known), nil
}
