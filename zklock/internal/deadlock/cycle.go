package deadlock

import "slices"

// step is one wait of a circle, and why it waits for the next: it stands behind a point in the queue of
// a lock, and the next holds a node of that queue which is ahead of the point and excludes it.
type step struct {
	wait   *wait
	behind int // index of the point
	next   *wait
	held   int // index of the node in what next holds
}

// maxSteps bounds a circle, and maxVisited the waits that a search may visit. A search that reaches a
// bound finds nothing.
const (
	maxSteps   = 64
	maxVisited = 10_000
)

// graph has the waits of a register by what they hold.
type graph struct {
	waits   []*wait
	holders map[uint64][]holder // by the hash of the lock
	refuted []step              // steps that a closer look has found to be wrong
}

// holder is a node that a wait holds.
type holder struct {
	wait *wait
	held int
}

// newGraph returns the graph of some waits.
func newGraph(waits []*wait) *graph {
	g := &graph{waits: waits, holders: make(map[uint64][]holder)}
	for _, w := range waits {
		for i, m := range w.held {
			g.holders[m.lock] = append(g.holders[m.lock], holder{w, i})
		}
	}
	return g
}

// steps calls yield for each wait that w waits for.
func (g *graph) steps(w *wait, yield func(step) bool) {
	for i, b := range w.behind {
		for _, h := range g.holders[b.lock] {
			held := h.wait.held[h.held]
			s := step{w, i, h.wait, h.held}
			if held.zxid < b.zxid && b.mode.Excludes(held.mode) && h.wait != w && !slices.Contains(g.refuted, s) && !yield(s) {
				return
			}
		}
	}
}

// circle returns the shortest circle of waits that last is in and in which it was registered last;
// nil if there is none. The first step is that of last. bounded reports that the search has reached a
// bound.
//
// Each step of a circle waits until all others have ended: a wait needs every node that is ahead of it to
// go, and a node goes after the wait of its holder only. So any circle is a deadlock, whatever else its
// waits wait for. Converging ways are none.
func (g *graph) circle(last *wait) (found []step, bounded bool) {
	from := map[*wait]step{} // the step by which the search has come to a wait
	level := []*wait{last}
	for depth := 1; len(level) > 0; depth++ {
		if depth > maxSteps || len(from) > maxVisited {
			return nil, true
		}
		var next []*wait
		for _, w := range level {
			for s := range func(yield func(step) bool) { g.steps(w, yield) } {
				if s.next == last {
					found = []step{s}
					for at := w; at != last; at = found[len(found)-1].wait {
						found = append(found, from[at])
					}
					slices.Reverse(found)
					return found, false
				}
				if _, seen := from[s.next]; !seen && s.next.order < last.order {
					from[s.next] = s
					next = append(next, s.next)
				}
			}
		}
		level = next
	}
	return nil, false
}
