package zklocktest

import (
	"cmp"
	"context"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/control"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// Order makes the test fail if callers acquire locks of the client in opposite orders, and shows the
// stacks of these acquisitions. Such callers can run into a deadlock: see [zklock.DeadlockError]. It does not
// matter whether they have met. Call Order before the first acquisition.
//
// Names belong to classes: a program orders orders and customers, and not each of them. The class
// of a name is the first text that is not empty of those that the functions return, and else the
// text before the name's first slash. The functions must be safe for concurrent use.
//
// When a caller whose context carries a lock (see [zklock.HeldIn]) acquires another one, Order records
// in which order it takes the two classes. It then looks for a circle of two or more orders. The names
// within a class must not be taken in opposite orders either. Locks of callers count as held ones: see
// [zklock.ContextWithCallerLocks]. So opposite orders of two services are found if the test calls Order for the
// clients of both, with the same t.
//
//   - An acquisition that fails counts, and one whose wait is bounded: its caller has asked for the order.
//   - A try does not wait, so it closes no circle. The lock that it gets is held as any other.
//   - Readers wait for each other only if a writer waits between them. Where two of them meet, a
//     circle counts once a caller has acquired a name of that class in another way than as a reader.
//   - A permit of a semaphore counts like a mutex. With n permits, a circle needs n callers that hold
//     one. The candidacy of an election counts like a mutex, too. Permits of callers in other services are not seen.
//   - The names of a [zklock.All] have no order among themselves. But an All waits in the queues of all its
//     names at once. So a caller that acquires two of them one after the other, in either order, can wait
//     in a circle with the All.
//   - An acquisition that joins a lock by [zklock.Reenter] does not count. A context from
//     [zklock.Detach] carries no lock.
//   - Opposite orders count even if all callers hold a common third lock meanwhile.
//
// Order calls t.Errorf on the goroutine whose acquisition closes a circle. It reports a circle of
// the same classes once, and one within a class once for the same stacks. It sees the
// client's acquisitions until t and its subtests have ended, also those that other tests make. Order
// may be called for several clients with the same t: they stand for processes that use one root.
//
// Order remembers 4,096 orders of classes, and as many of names within classes. It compares later
// ones with these, and logs once that it does not remember them.
func Order(t testing.TB, client *zklock.Client, class ...func(name string) string) {
	t.Helper()
	if client == nil {
		t.Errorf("zklocktest: Order got a nil Client: pass one that New or Open has returned")
		return
	}
	r := recordOf(t)
	stop := control.Observe(client, func(ctx context.Context, wants []place.Want, try bool) {
		if try {
			return
		}
		acquired := make([]part, len(wants))
		for i, w := range wants {
			acquired[i] = partOf(w.Name, zklock.Mode(w.Kind.Mode), class)
		}
		var held []part
		for _, l := range zklock.HeldIn(ctx) {
			modes := l.Modes()
			for i, name := range l.Names() {
				held = append(held, partOf(name, modes[i], class))
			}
		}
		for _, l := range control.CallersIn[zklock.CallerLock](ctx) {
			held = append(held, partOf(l.Name, l.Mode, class))
		}
		r.acquire(held, acquired)
	})
	t.Cleanup(func() {
		stop()
		r.leave()
	})
}

// part is one name that a caller holds or acquires.
type part struct {
	class, name string
	shared      bool
}

// partOf returns the part with its class: see Order.
func partOf(name string, mode zklock.Mode, class []func(string) string) part {
	p := part{name: name, shared: mode == zklock.Shared}
	for _, f := range class {
		if f != nil {
			if p.class = f(name); p.class != "" {
				return p
			}
		}
	}
	p.class, _, _ = strings.Cut(name, "/")
	return p
}

// rank is less for parts that more others have to wait for.
func (p part) rank() int {
	if p.shared {
		return 1
	}
	return 0
}

// record has the orders that the clients of a test have shown.
type record struct {
	t     testing.TB
	calls int // guarded by records.mu; calls of Order whose clean-up has not run

	mu       sync.Mutex
	classes  graph           // guarded by mu
	names    graph           // guarded by mu; names within their classes
	written  map[string]bool // guarded by mu; classes in which callers have waited not only as readers
	reported map[string]bool // guarded by mu

	reporting sync.Mutex // held while t's methods run: they panic once t has ended
	ended     bool       // guarded by reporting
}

// records has the record of each test that runs, since several clients of one test have one.
var records = struct {
	mu sync.Mutex
	of map[testing.TB]*record // guarded by mu
}{of: make(map[testing.TB]*record)}

// recordOf returns the record of a test, until leave has been called as often.
func recordOf(t testing.TB) *record {
	records.mu.Lock()
	defer records.mu.Unlock()
	isKey := reflect.ValueOf(t).Comparable() // a stand-in for a test may be of any type
	if isKey && records.of[t] != nil {
		records.of[t].calls++
		return records.of[t]
	}
	r := &record{t: t, calls: 1, written: make(map[string]bool), reported: make(map[string]bool)}
	r.classes = graph{edges: make(map[key]bool), out: make(map[string][]*edge)}
	r.names = graph{edges: make(map[key]bool), out: make(map[string][]*edge), byName: true}
	if isKey {
		records.of[t] = r
	}
	return r
}

// leave is called when t ends. After the last call the record calls none of t's methods.
func (r *record) leave() {
	records.mu.Lock()
	r.calls--
	last := r.calls == 0
	if last && reflect.ValueOf(r.t).Comparable() {
		delete(records.of, r.t)
	}
	records.mu.Unlock()
	if last {
		r.reporting.Lock()
		defer r.reporting.Unlock()
		r.ended = true
	}
}

// acquire records an acquisition that may wait, with what its caller holds, and reports the circles
// that it closes.
func (r *record) acquire(held, acquired []part) {
	if reports := r.add(held, acquired); len(reports) > 0 {
		r.reporting.Lock()
		defer r.reporting.Unlock()
		for _, report := range reports {
			if !r.ended {
				report()
			}
		}
	}
}

// add is acquire without the reports, which it returns.
func (r *record) add(held, acquired []part) (reports []func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full := r.classes.full() || r.names.full()
	for _, w := range acquired {
		if !w.shared && !r.written[w.class] {
			r.written[w.class] = true // circles through readers of the class count from now on
			for _, g := range []*graph{&r.classes, &r.names} {
				for _, e := range g.readers(w.class) {
					reports = r.close(g, e, reports)
				}
			}
		}
	}
	for _, h := range held {
		for _, w := range acquired {
			reports = r.addEdge(&edge{from: h, to: w}, reports)
		}
	}
	// Edges in both directions between neighbours connect all names of an All. Neighbours are those of one
	// class, and of each class and the next the first ones: a reader is first only if all are readers.
	all := slices.Clone(acquired)
	slices.SortFunc(all, func(v, w part) int {
		return cmp.Or(cmp.Compare(v.class, w.class), v.rank()-w.rank(), cmp.Compare(v.name, w.name))
	})
	first := 0
	for i := 1; i < len(all); i++ {
		v, w := all[i-1], all[i]
		if v.class != w.class {
			v, first = all[first], i
		}
		reports = r.addEdge(&edge{from: v, to: w, all: &all[0]}, reports)
		reports = r.addEdge(&edge{from: w, to: v, all: &all[0]}, reports)
	}
	if !full && (r.classes.full() || r.names.full()) {
		reports = append(reports, func() {
			r.t.Logf("zklocktest: Order remembers no more than %d orders; later ones are compared with these only", most)
		})
	}
	return reports
}

// addEdge adds an edge if its graph does not have it, and then the reports of the circle that it closes.
func (r *record) addEdge(e *edge, reports []func()) []func() {
	g := &r.classes
	if e.from.class == e.to.class {
		g = &r.names
	}
	if e.from.name == e.to.name || g.edges[g.key(e)] {
		return reports
	}
	e.stack = make([]uintptr, 64) // the outer frames of a deeper stack are left out
	e.stack = e.stack[:runtime.Callers(1, e.stack)]
	if !g.full() {
		g.edges[g.key(e)] = true
		g.out[g.node(e.from)] = append(g.out[g.node(e.from)], e)
	}
	return r.close(g, e, reports)
}

// close adds a report of the shortest circle with the edge, if there is one that was not reported.
func (r *record) close(g *graph, e *edge, reports []func()) []func() {
	circle := g.circle(e, r.written)
	if circle == nil {
		return reports
	}
	var id []string
	for _, e := range circle {
		if g.byName {
			id = append(id, e.from.class+"\n"+strings.Join(e.frames(), "\n"))
		} else {
			id = append(id, e.from.class)
		}
	}
	slices.Sort(id)
	if id := strings.Join(slices.Compact(id), "\n"); !r.reported[id] {
		r.reported[id] = true
		reports = append(reports, func() { r.t.Errorf("%s", g.describe(circle)) })
	}
	return reports
}
