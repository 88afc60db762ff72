package deadlock

import "slices"

// maxSteps bounds a circle, and maxVisited how many steps the searches of one look may follow. A search
// that reaches a bound finds nothing.
const (
	maxSteps   = 64
	maxVisited = 1_000_000
)

// circle returns the shortest circle of waits that last is in and in which it was registered last;
// nil if there is none. The first step is that of last. A wait that waits for itself is a circle of one step.
// bounded reports that the search has reached a bound.
//
// Each step of a circle waits until all others have ended: a wait needs every node that is ahead of it to
// go, and a node goes after the wait of its holder only. So any circle is a deadlock, whatever else its
// waits wait for. Converging ways are none.
//
// The search visits the holders of a node once, however many waits stand behind the node: a wait follows
// only what is behind the last node of the queue that another has followed. last itself follows all, since
// the others may come back to what it holds. So does a wait with a step that is wrong.
func (g *graph) circle(last *namedWait) (found []step, bounded bool) {
	if g.component[last] == 0 || g.over[last] {
		return nil, false
	}
	from := map[*namedWait]step{} // the step by which the search has come to a wait
	followed := map[lane]int{}
	level := []*namedWait{last}
	for depth := 1; len(level) > 0; depth++ {
		if depth > maxSteps || g.visited > maxVisited {
			return nil, true
		}
		var next []*namedWait
		for _, w := range level {
			again := w == last || len(g.refuted[w]) > 0
			for i, b := range w.behind {
				if g.points[b] {
					continue
				}
				l, n := g.ahead(b)
				first := 0
				if !again {
					first = followed[l]
					followed[l] = max(first, n)
				}
				for _, h := range g.lanes[l][min(first, n):n] {
					g.visited++
					s := step{w, i, h.wait, h.held}
					if g.component[h.wait] != g.component[last] || g.wrong(s) { // TestReaderBehindAWriterThatWaitsForItsCaller
						continue
					}
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
		}
		level = next
	}
	return nil, false
}
