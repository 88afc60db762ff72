package zklocktest

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// most is how many edges a graph has at most.
const most = 4096

// graph has the orders of classes, or of names within their classes.
type graph struct {
	byName bool
	edges  map[key]bool
	out    map[string][]*edge // by the node that they begin at
}

// edge says that a caller may wait for a part while others have to wait for it at another one.
type edge struct {
	from, to part
	all      *part // nil if the caller holds from; of an All that stands in both queues, its first part
	stack    []uintptr
}

// key identifies an edge in its graph.
type key struct {
	from, to             string
	fromShared, toShared bool
	all                  bool
}

func (g *graph) full() bool { return len(g.edges) >= most }

func (g *graph) key(e *edge) key {
	return key{g.node(e.from), g.node(e.to), e.from.shared, e.to.shared, e.all != nil}
}

func (g *graph) node(p part) string {
	if g.byName {
		return p.name
	}
	return p.class
}

// readers returns the edges that end with a wait as a reader of the class.
func (g *graph) readers(class string) (found []*edge) {
	for _, out := range g.out {
		for _, e := range out {
			if e.to.class == class && e.to.shared {
				found = append(found, e)
			}
		}
	}
	return found
}

// circle returns the shortest circle of edges that begins with e, in which each caller may wait for the
// next one. At least one of them holds a lock: Alls alone never wait for each other in a circle.
func (g *graph) circle(e *edge, written map[string]bool) []*edge {
	type step struct {
		edge *edge
		held bool // an edge on the way is not an All's
	}
	waitsFor := func(e, next *edge) bool {
		passes := e.all != nil && e.all == next.all // the same caller goes on
		return passes || !e.to.shared || !next.from.shared || written[e.to.class]
	}
	start := step{e, e.all == nil}
	before := map[step]step{start: {}}
	for queue := []step{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.held && g.node(at.edge.to) == g.node(e.from) && waitsFor(at.edge, e) {
			var way []*edge
			for ; at.edge != nil; at = before[at] {
				way = append(way, at.edge)
			}
			slices.Reverse(way)
			return byCaller(way)
		}
		for _, next := range g.out[g.node(at.edge.to)] {
			s := step{next, at.held || next.all == nil}
			if _, seen := before[s]; !seen && next != e && waitsFor(at.edge, next) {
				before[s] = at
				queue = append(queue, s)
			}
		}
	}
	return nil
}

// byCaller returns a circle with one edge for each caller: it joins those of one All.
func byCaller(way []*edge) (circle []*edge) {
	sameAll := func(v, w *edge) bool { return v.all != nil && v.all == w.all }
	for range way { // until the circle begins with a caller's first edge
		if sameAll(way[len(way)-1], way[0]) {
			way = slices.Concat(way[1:], way[:1])
		}
	}
	for _, e := range way {
		if last := len(circle) - 1; last >= 0 && sameAll(circle[last], e) {
			joined := *circle[last]
			joined.to = e.to
			circle[last] = &joined
			continue
		}
		circle = append(circle, e)
	}
	return circle
}

// describe returns the report of a circle.
func (g *graph) describe(circle []*edge) string {
	kind, how := "classes", "in opposite orders"
	if g.byName {
		kind = "names"
	}
	if len(circle) > 2 {
		how = "in orders that form a circle"
	}
	var nodes []string
	for _, e := range circle {
		nodes = append(nodes, strconv.Quote(g.node(e.from)))
		if e.all != nil {
			how = "one after the other and at once"
		}
	}
	slices.Sort(nodes)
	last := len(nodes) - 1
	var b strings.Builder
	fmt.Fprintf(&b, "zklocktest: callers acquire the %s %s and %s %s, and can run into a deadlock\n", kind, strings.Join(nodes[:last], ", "), nodes[last], how)
	caller := "One"
	for _, e := range circle {
		if e.all == nil {
			fmt.Fprintf(&b, "%s caller holds %q and acquires %q:\n", caller, e.from.name, e.to.name)
		} else {
			fmt.Fprintf(&b, "%s caller acquires %q and %q at once:\n", caller, min(e.from.name, e.to.name), max(e.from.name, e.to.name))
		}
		for _, frame := range e.frames() {
			fmt.Fprintf(&b, "\t%s\n", frame)
		}
		caller = "Another"
	}
	b.WriteString("Acquire them in one order everywhere, or everywhere at once with zklock.All.")
	return b.String()
}

// frames returns the frames that lead to the acquisition, the innermost first, without those of this
// library and of the test's runner, if others are left.
func (e *edge) frames() []string {
	var all, own []string
	frames := runtime.CallersFrames(e.stack)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		frame := fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line)
		all = append(all, frame)
		ofLibrary := func(prefix string) bool { return strings.HasPrefix(f.Function, prefix) }
		if !slices.ContainsFunc(libraries, ofLibrary) || strings.HasSuffix(f.File, "_test.go") {
			own = append(own, frame)
		}
	}
	if len(own) == 0 { // as in: go mutex.Acquire(ctx)
		return all
	}
	return own
}

// libraries has the prefixes of the functions that frames leaves out.
var libraries = []string{"github.com/zklock/go-zklock/zklock.", "github.com/zklock/go-zklock/zklock/", "runtime.", "testing.", "internal/synctest."}
