package deadlock

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// waitOf returns a wait that was registered at order, stands behind zxid on some locks, and holds nodes of
// others.
func waitOf(order int64, behind, held []mark) *namedWait {
	return &namedWait{id: id{1, uint32(order)}, number: uint32(order) + 7, order: order, behind: behind, held: held}
}

func exclusive(lock uint64, zxid int64) mark { return mark{lock, zxid, queue.Exclusive} }

func TestCircle(t *testing.T) {
	const x, y, z = 1, 2, 3
	pair := []*namedWait{
		waitOf(1, []mark{exclusive(y, 20)}, []mark{exclusive(x, 10)}),
		waitOf(2, []mark{exclusive(x, 20)}, []mark{exclusive(y, 10)}),
	}
	for name, c := range map[string]struct {
		waits []*namedWait
		last  int
		steps int
	}{
		"the last of a pair":             {pair, 1, 2},
		"the first of a pair":            {pair, 0, 0},
		"one wait":                       {pair[1:], 0, 0},
		"a node behind the point":        {[]*namedWait{pair[0], waitOf(2, []mark{exclusive(x, 9)}, pair[1].held)}, 1, 0},
		"the point itself":               {[]*namedWait{pair[0], waitOf(2, []mark{exclusive(x, 11)}, pair[1].held)}, 1, 2},
		"a reader and a writer":          {[]*namedWait{pair[0], waitOf(2, []mark{{x, 20, queue.Shared}}, pair[1].held)}, 1, 2},
		"two readers":                    {[]*namedWait{waitOf(1, pair[0].behind, []mark{{x, 10, queue.Shared}}), waitOf(2, []mark{{x, 20, queue.Shared}}, pair[1].held)}, 1, 0},
		"a wait that converges":          {[]*namedWait{pair[0], pair[1], waitOf(3, []mark{exclusive(x, 30)}, []mark{exclusive(z, 10)})}, 2, 0},
		"a circle that another has seen": {[]*namedWait{pair[0], pair[1], waitOf(3, []mark{exclusive(x, 30)}, nil)}, 2, 0},
		"ways that converge in a circle of a later wait": {[]*namedWait{
			waitOf(1, []mark{exclusive(x, 20)}, []mark{exclusive(y, 10), exclusive(z, 10)}),
			waitOf(2, []mark{exclusive(y, 20)}, []mark{exclusive(4, 10)}),
			waitOf(3, []mark{exclusive(z, 20), exclusive(4, 20)}, []mark{exclusive(5, 10)}),
			waitOf(4, []mark{exclusive(5, 20)}, []mark{exclusive(x, 10)}),
		}, 2, 0},
		"a wait for what it holds":               {[]*namedWait{waitOf(1, []mark{exclusive(x, 20)}, []mark{exclusive(x, 10)})}, 0, 1},
		"a wait for what it holds over a writer": {[]*namedWait{waitOf(1, []mark{{x, 30, queue.Shared}, exclusive(x, 20)}, []mark{{x, 10, queue.Shared}})}, 0, 1},
		"a reader of what it reads":              {[]*namedWait{waitOf(1, []mark{{x, 30, queue.Shared}}, []mark{{x, 10, queue.Shared}})}, 0, 0},
		"a writer behind what it holds":          {[]*namedWait{waitOf(1, []mark{{x, 30, queue.Shared}, exclusive(x, 9)}, []mark{{x, 10, queue.Shared}})}, 0, 0},
		"a circle of a wait for itself":          {[]*namedWait{waitOf(1, []mark{exclusive(x, 20)}, []mark{exclusive(x, 10)}), waitOf(2, []mark{exclusive(x, 30)}, []mark{exclusive(z, 10)})}, 1, 0},
	} {
		found, bounded := newGraph(c.waits).circle(c.waits[c.last])
		if len(found) != c.steps || bounded {
			t.Errorf("%s: %d steps, want %d; bounded %v", name, len(found), c.steps, bounded)
		}
	}
}

// TestCircleAgreesWithBruteForce compares the search with one that follows all ways. Some steps were found to
// be wrong, and some registrations, points and nodes to be gone.
func TestCircleAgreesWithBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	circles, wrong := 0, 0
	for range 20_000 {
		waits := randomWaits(r)
		g := newGraph(waits)
		for _, w := range waits {
			for _, s := range stepsOf(waits, w) {
				switch r.IntN(24) {
				case 0, 1, 2:
					g.refute(s)
				case 3:
					switch r.IntN(3) {
					case 0:
						g.over[w] = true
					case 1:
						g.points[w.behind[s.behind]] = true
					default:
						g.nodes[s.next.held[s.held].node()] = true
					}
				default:
					continue
				}
				wrong++
			}
		}
		for _, last := range waits {
			found, _ := g.circle(last)
			if want := returns(g, last, last, nil); (found != nil) != want {
				t.Fatalf("found %v, want a circle: %v", found, want)
			}
			for i, s := range found {
				held, behind := s.next.held[s.held], s.wait.behind[s.behind]
				if s.next != found[(i+1)%len(found)].wait || held.lock != behind.lock || held.zxid >= behind.zxid || !behind.mode.Excludes(held.mode) || s.wait.order > last.order || isWrong(g, s) {
					t.Fatalf("step %d of %v", i, found)
				}
			}
			if found != nil {
				circles++
			}
		}
	}
	if circles < 1000 || wrong < 1000 {
		t.Errorf("only %d circles and %d wrong steps", circles, wrong)
	}
}

func randomWaits(r *rand.Rand) (waits []*namedWait) {
	for i := range 2 + r.IntN(5) {
		marks := func(n int) (all []mark) {
			for range n {
				all = append(all, mark{uint64(r.IntN(5)), int64(r.IntN(6)), queue.Mode(1 + r.IntN(2))})
			}
			return all
		}
		waits = append(waits, waitOf(int64(i), marks(1+r.IntN(2)), marks(1+r.IntN(2))))
	}
	return waits
}

// stepsOf returns the steps from a wait to those that it waits for.
func stepsOf(waits []*namedWait, w *namedWait) (all []step) {
	for i, b := range w.behind {
		for _, o := range waits {
			for j, held := range o.held {
				if held.lock == b.lock && held.zxid < b.zxid && b.mode.Excludes(held.mode) {
					all = append(all, step{w, i, o, j})
				}
			}
		}
	}
	return all
}

// returns reports whether a way from w leads to last over waits that were registered before it.
func returns(g *graph, w, last *namedWait, passed []*namedWait) bool {
	return slices.ContainsFunc(stepsOf(g.waits, w), func(s step) bool {
		return !isWrong(g, s) &&
			(s.next == last || s.next.order < last.order && !slices.Contains(passed, s.next) && returns(g, s.next, last, append(passed, s.next)))
	})
}

func isWrong(g *graph, s step) bool {
	held := s.next.held[s.held]
	return g.over[s.wait] || g.over[s.next] || g.points[s.wait.behind[s.behind]] || g.nodes[mark{lock: held.lock, zxid: held.zxid}] || slices.Contains(g.refuted[s.wait], s)
}

// TestSearchPassesWhatIsGone: of two waits behind nodes of one queue, the first stands behind a point that is gone. The
// search goes on from the second one, which stands before it.
func TestSearchPassesWhatIsGone(t *testing.T) {
	waits := []*namedWait{
		waitOf(1, []mark{exclusive(2, 30)}, []mark{exclusive(1, 10)}),
		waitOf(2, []mark{exclusive(2, 25)}, []mark{exclusive(1, 11)}),
		waitOf(3, []mark{exclusive(1, 20)}, []mark{exclusive(2, 10)}),
	}
	g := newGraph(waits)
	g.points[exclusive(2, 30)] = true
	if found, _ := g.circle(waits[2]); len(found) != 2 || found[1].wait != waits[1] {
		t.Errorf("found %v, want the circle over the second wait", found)
	}
}

func TestSearchIsBounded(t *testing.T) {
	var waits []*namedWait
	for i := range int64(maxSteps + 2) {
		waits = append(waits, waitOf(i, []mark{exclusive(uint64(i+1)%(maxSteps+2), 20)}, []mark{exclusive(uint64(i), 10)}))
	}
	if found, bounded := newGraph(waits).circle(waits[len(waits)-1]); found != nil || !bounded {
		t.Errorf("a circle of %d waits: found %v, bounded %v", len(waits), found != nil, bounded)
	}
}

// layers returns waits in layers. All of a layer read one lock, for which all of the layer before wait as
// writers. ring: those of the last layer wait for the first.
func layers(count, size int64, ring bool) (waits []*namedWait) {
	for l := range count {
		for range size {
			wanted := uint64(l + 1)
			if ring {
				wanted %= uint64(count)
			}
			waits = append(waits, waitOf(int64(len(waits)), []mark{exclusive(wanted, size+1)}, []mark{{uint64(l), int64(len(waits)) % size, queue.Shared}}))
		}
	}
	return waits
}

// TestSearchOfManyWaits counts the steps of the searches of one look, for all of its waits. They grow with the
// waits, and not with how many waits of a layer wait for how many of the next.
func TestSearchOfManyWaits(t *testing.T) {
	line := []*namedWait{}
	for i := range int64(10_000) {
		line = append(line, waitOf(i, []mark{exclusive(1, i+2)}, []mark{exclusive(uint64(i+2), 1)}))
	}
	for name, waits := range map[string][]*namedWait{
		"waits for one node, whose holder waits for nothing": line,
		"waits in layers":                          layers(40, 100, false),
		"waits in two layers":                      layers(2, 4_000, false),
		"waits that hold a node in the same queue": inOneQueue(4_000),
	} {
		g := newGraph(waits)
		for _, w := range waits {
			if found, bounded := g.circle(w); found != nil || bounded {
				t.Fatal(name, found, bounded)
			}
		}
		t.Logf("%s: %d waits, %d steps", name, len(waits), g.visited)
		if most := 4 * len(waits); g.visited > most {
			t.Errorf("%s: %d steps, want at most %d", name, g.visited, most)
		}
	}
	waits := layers(40, 100, true)
	g := newGraph(waits)
	before := g.visited
	if found, bounded := g.circle(waits[len(waits)-1]); len(found) != 40 || bounded {
		t.Errorf("layers in a ring: a circle of %d waits, bounded %v", len(found), bounded)
	}
	if most := 2 * len(waits); g.visited-before > most {
		t.Errorf("layers in a ring: %d steps, want at most %d", g.visited-before, most)
	}
}

// inOneQueue returns waits that stand in one queue, each with a node of its own, and wait for another one.
func inOneQueue(count int64) (waits []*namedWait) {
	for i := range count {
		waits = append(waits, waitOf(i, []mark{exclusive(1, i)}, []mark{exclusive(1, i)}))
	}
	return waits
}

// TestLookIsBounded: many waits wait for each other, and one look does not search for all of them.
func TestLookIsBounded(t *testing.T) {
	waits := layers(60, 100, true)
	g := newGraph(waits)
	unknown := 0
	for _, w := range waits {
		if _, bounded := g.circle(w); bounded {
			unknown++
		}
	}
	if most := maxVisited + 2*len(waits); unknown == 0 || g.visited > most {
		t.Errorf("%d searches have reached a bound, and %d steps were followed, want at most %d", unknown, g.visited, most)
	}
}
