package deadlock

import (
	"cmp"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// step is one wait of a circle, and why it waits for the next: it stands behind a point in the queue of
// a lock, and the next holds a node of that queue which is ahead of the point and excludes it.
type step struct {
	wait   *namedWait
	behind int // index of the point
	next   *namedWait
	held   int // index of the node in what next holds
}

// heldNode is a node that a wait holds.
type heldNode struct {
	wait *namedWait
	held int
}

// lane is the nodes of a lock's queue that a mode excludes. A wait that stands behind a point waits for the
// nodes of a lane up to there.
type lane struct {
	lock uint64 // the hash of the lock
	mode queue.Mode
}

// graph has the waits of a register, and which of them wait for which. Its size is that of the register:
// waits behind one node share what is ahead of it.
type graph struct {
	waits     []*namedWait
	byID      map[id][]*namedWait   // more than one if another program has made a copy
	lanes     map[lane][]heldNode   // in the order of the queue
	component map[*namedWait]int    // the same for waits that wait for each other, perhaps over others, and one's own for a wait for itself; 0: a wait is in no circle
	over      map[*namedWait]bool   // the registrations that a closer look has found to be gone
	nodes     map[mark]bool         // the held nodes that it has found to be gone, without their modes: see mark.node
	points    map[mark]bool         // the points that it has found to be gone
	refuted   map[*namedWait][]step // single steps that it has found to be wrong
	visited   int                   // steps that were followed
}

// newGraph returns the graph of some waits.
func newGraph(waits []*namedWait) *graph {
	g := &graph{waits: waits, byID: make(map[id][]*namedWait), lanes: make(map[lane][]heldNode), component: make(map[*namedWait]int),
		over: make(map[*namedWait]bool), nodes: make(map[mark]bool), points: make(map[mark]bool), refuted: make(map[*namedWait][]step)}
	holders := make(map[uint64][]heldNode) // by the hash of the lock
	for _, w := range waits {
		g.byID[w.id] = append(g.byID[w.id], w)
		for i, m := range w.held {
			holders[m.lock] = append(holders[m.lock], heldNode{w, i})
		}
	}
	for _, w := range waits {
		for _, b := range w.behind {
			l := lane{b.lock, b.mode}
			if _, made := g.lanes[l]; !made {
				g.lanes[l] = laneOf(holders[b.lock], b.mode)
			}
		}
	}
	g.connect()
	return g
}

// refute takes one step out of the graph.
func (g *graph) refute(s step) { g.refuted[s.wait] = append(g.refuted[s.wait], s) }

// laneOf returns those of some holders that a mode excludes, in the order of the queue.
func laneOf(holders []heldNode, mode queue.Mode) []heldNode {
	all := make([]heldNode, 0, len(holders))
	for _, h := range holders {
		if held := h.wait.held[h.held]; mode.Excludes(held.mode) {
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b heldNode) int { return cmp.Compare(a.zxid(), b.zxid()) })
	return all
}

func (h heldNode) zxid() int64 { return h.wait.held[h.held].zxid }

// alone returns the step of a wait to itself: a wait of which the context holds what is ahead of it, over a wait of
// another between the two, or over another client. ok is false if there is none.
func (g *graph) alone(w *namedWait) (s step, ok bool) {
	for i, b := range w.behind {
		for j, h := range w.held {
			s = step{w, i, w, j}
			if h.lock == b.lock && h.zxid < b.zxid && b.mode.Excludes(h.mode) && !g.wrong(s) {
				return s, true
			}
		}
	}
	return step{}, false
}

// wrong reports whether a closer look has found that a step is none.
func (g *graph) wrong(s step) bool {
	return g.over[s.wait] || g.over[s.next] || g.points[s.wait.behind[s.behind]] || g.nodes[s.next.held[s.held].node()] || slices.Contains(g.refuted[s.wait], s)
}

// find returns the wait of a registration; nil if there is none.
func (g *graph) find(r *registration) *namedWait {
	for _, w := range g.byID[r.wait.id] {
		if r.wait.node == "" || w.node == r.wait.node { // it has none if the reply to its create was lost
			return w
		}
	}
	return nil
}

// ahead returns the lane of a point, and how many nodes of it are ahead of the point.
func (g *graph) ahead(b mark) (l lane, n int) {
	l = lane{b.lock, b.mode}
	n, _ = slices.BinarySearchFunc(g.lanes[l], b.zxid, func(h heldNode, zxid int64) int { return cmp.Compare(h.zxid(), zxid) })
	return l, n
}

// connect finds the components, with Tarjan's algorithm. Its vertices are the waits, and after them the
// nodes of all lanes: a node leads to the wait that holds it and to the node before it. So the waits behind
// a node of which many are held lead to one vertex, and not to each of the holders.
func (g *graph) connect() {
	begin := make(map[lane]int) // the vertex of a lane's first node
	vertex := make(map[*namedWait]int)
	out := make([][]int, len(g.waits))
	for i, w := range g.waits {
		vertex[w] = i
	}
	for l, all := range g.lanes {
		begin[l] = len(out)
		for i, h := range all {
			to := []int{vertex[h.wait]}
			if i > 0 {
				to = append(to, len(out)-1)
			}
			out = append(out, to)
		}
	}
	for i, w := range g.waits {
		for _, b := range w.behind {
			if l, n := g.ahead(b); n > 0 {
				out[i] = append(out[i], begin[l]+n-1)
			}
		}
	}
	for i, all := range g.components(out, len(g.waits)) {
		for _, w := range all {
			g.component[g.waits[w]] = i + 1
		}
	}
}

// components returns the strongly connected components of a graph that have two or more vertices, of which
// one at least is of the first ones, and these of them. out has where each vertex leads. A vertex does not
// lead to itself: a wait for itself leads there over a node.
func (g *graph) components(out [][]int, first int) (found [][]int) {
	type visit struct{ vertex, next int }
	number, low := make([]int, len(out)), make([]int, len(out)) // 0: not visited
	left := make([]bool, len(out))                              // its component is known
	count := 0
	var stack []int
	var calls []visit
	for root := range first {
		if number[root] == 0 {
			calls = append(calls, visit{root, 0})
		}
		for len(calls) > 0 {
			c := &calls[len(calls)-1]
			v := c.vertex
			if number[v] == 0 {
				count++
				number[v], low[v] = count, count
				stack = append(stack, v)
			}
			if c.next < len(out[v]) {
				to := out[v][c.next]
				c.next++
				g.visited++
				if number[to] == 0 {
					calls = append(calls, visit{to, 0})
				} else if !left[to] {
					low[v] = min(low[v], number[to])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				before := calls[len(calls)-1].vertex
				low[before] = min(low[before], low[v])
			}
			if low[v] < number[v] {
				continue
			}
			var members []int
			size := 0
			for last := -1; last != v; size++ {
				last = stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if left[last] = true; last < first {
					members = append(members, last)
				}
			}
			if size > 1 {
				found = append(found, members)
			}
		}
	}
	return found
}
