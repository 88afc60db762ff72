package deadlock

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// waitOf returns a wait that was registered at order, stands behind zxid on some locks, and holds nodes of
// others.
func waitOf(order int64, behind, held []mark) *wait {
	return &wait{id: id{1, uint32(order)}, order: order, behind: behind, held: held}
}

func exclusive(lock uint64, zxid int64) mark { return mark{lock, zxid, queue.Exclusive} }

func TestCircle(t *testing.T) {
	const x, y, z = 1, 2, 3
	pair := []*wait{
		waitOf(1, []mark{exclusive(y, 20)}, []mark{exclusive(x, 10)}),
		waitOf(2, []mark{exclusive(x, 20)}, []mark{exclusive(y, 10)}),
	}
	for name, c := range map[string]struct {
		waits []*wait
		last  int
		steps int
	}{
		"the last of a pair":             {pair, 1, 2},
		"the first of a pair":            {pair, 0, 0},
		"one wait":                       {pair[1:], 0, 0},
		"a node behind the point":        {[]*wait{pair[0], waitOf(2, []mark{exclusive(x, 9)}, pair[1].held)}, 1, 0},
		"the point itself":               {[]*wait{pair[0], waitOf(2, []mark{exclusive(x, 11)}, pair[1].held)}, 1, 2},
		"a reader and a writer":          {[]*wait{pair[0], waitOf(2, []mark{{x, 20, queue.Shared}}, pair[1].held)}, 1, 2},
		"two readers":                    {[]*wait{waitOf(1, pair[0].behind, []mark{{x, 10, queue.Shared}}), waitOf(2, []mark{{x, 20, queue.Shared}}, pair[1].held)}, 1, 0},
		"a wait that converges":          {[]*wait{pair[0], pair[1], waitOf(3, []mark{exclusive(x, 30)}, []mark{exclusive(z, 10)})}, 2, 0},
		"a circle that another has seen": {[]*wait{pair[0], pair[1], waitOf(3, []mark{exclusive(x, 30)}, nil)}, 2, 0},
		"a wait for what it holds":       {[]*wait{waitOf(1, []mark{exclusive(x, 20)}, []mark{exclusive(x, 10)})}, 0, 0},
	} {
		found, bounded := newGraph(c.waits).circle(c.waits[c.last])
		if len(found) != c.steps || bounded {
			t.Errorf("%s: %d steps, want %d; bounded %v", name, len(found), c.steps, bounded)
		}
	}
}

// TestCircleAgreesWithBruteForce compares the search with one that follows all ways.
func TestCircleAgreesWithBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	circles := 0
	for range 20_000 {
		waits := randomWaits(r)
		g := newGraph(waits)
		for _, last := range waits {
			found, _ := g.circle(last)
			if want := returns(g, last, last, nil); (found != nil) != want {
				t.Fatalf("found %v, want a circle: %v", found, want)
			}
			for i, s := range found {
				held, behind := s.next.held[s.held], s.wait.behind[s.behind]
				if s.next != found[(i+1)%len(found)].wait || held.lock != behind.lock || held.zxid >= behind.zxid || !behind.mode.Excludes(held.mode) || s.wait.order > last.order {
					t.Fatalf("step %d of %v", i, found)
				}
			}
			if found != nil {
				circles++
			}
		}
	}
	if circles < 1000 {
		t.Errorf("only %d circles", circles)
	}
}

func randomWaits(r *rand.Rand) (waits []*wait) {
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

// returns reports whether a way from w leads to last over waits that were registered before it.
func returns(g *graph, w, last *wait, passed []*wait) (found bool) {
	g.steps(w, func(s step) bool {
		found = s.next == last || s.next.order < last.order && !slices.Contains(passed, s.next) && returns(g, s.next, last, append(passed, s.next))
		return !found
	})
	return found
}

func TestSearchIsBounded(t *testing.T) {
	var waits []*wait
	for i := range int64(maxSteps + 2) {
		waits = append(waits, waitOf(i, []mark{exclusive(uint64(i+1)%(maxSteps+2), 20)}, []mark{exclusive(uint64(i), 10)}))
	}
	if found, bounded := newGraph(waits).circle(waits[len(waits)-1]); found != nil || !bounded {
		t.Errorf("a circle of %d waits: found %v, bounded %v", len(waits), found != nil, bounded)
	}
}

// TestSearchOfManyWaits: ten thousand waits for one node, whose holder waits for nothing.
func TestSearchOfManyWaits(t *testing.T) {
	var waits []*wait
	for i := range int64(10_000) {
		waits = append(waits, waitOf(i, []mark{exclusive(1, i+2)}, []mark{exclusive(uint64(i+2), 1)}))
	}
	g := newGraph(waits)
	for _, w := range waits {
		if found, bounded := g.circle(w); found != nil || bounded {
			t.Fatal(found, bounded)
		}
	}
}
