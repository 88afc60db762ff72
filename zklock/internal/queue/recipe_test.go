package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// blocks reports whether a contender of mode self has to wait for one of mode ahead.
func blocks(ahead, self Mode) bool { return ahead == Exclusive || self == Exclusive }

// orders returns all queues of up to most writers and readers.
func orders(most int) (all [][]Node) {
	for n := 1; n <= most; n++ {
		for order := range 1 << n {
			q := make([]Node, n)
			for i := range q {
				q[i] = Node{Name: fmt.Sprint(i), Seq: int64(i), Kind: Kind{Mode: Exclusive}}
				if order&(1<<i) != 0 {
					q[i].Kind.Mode = Shared
				}
			}
			all = append(all, q)
		}
	}
	return all
}

// Decide is compared with a brute-force model, in all queues of up to twelve contenders. A contender that holds is blocked by none
// ahead. A contender that waits is blocked by the one that it watches, and by none between
// the two.
func TestDecideAgreesWithBruteForce(t *testing.T) {
	for _, q := range orders(12) {
		for self := range q {
			nearest := -1
			for i := range self {
				if blocks(q[i].Kind.Mode, q[self].Kind.Mode) {
					nearest = i
				}
			}
			held, watch := Decide(q, self, 1)
			if held != (nearest < 0) || !held && (len(watch.On) != 1 || watch.On[0] != nearest) {
				t.Fatalf("Decide(%v, %d) = %v, %d; the nearest contender that blocks it is %d", q, self, held, watch.On, nearest)
			}
		}
	}
}

// The first in line is the waiter that holds next, when all holders have left. If it is a shared
// contender, the shared contenders right behind it are first in line too. Among contenders for
// permits, the first in line is the first waiter behind the holders.
func TestFirstInLineIsNext(t *testing.T) {
	const most = 10 // contenders: all orders of readers and writers
	for _, q := range orders(most) {
		kinds := make([]Kind, len(q))
		for i := range q {
			kinds[i] = q[i].Kind
		}
		firstIsNext(t, kinds)
	}
	for n := 1; n <= most; n++ {
		for _, permits := range []int{1, 2, 3} {
			firstIsNext(t, slices.Repeat([]Kind{{Mode: Permit, Permits: permits}}, n))
		}
	}
}

// firstIsNext compares First with what Decide says when the contenders that hold have left.
func firstIsNext(t *testing.T, kinds []Kind) {
	t.Helper()
	var q, waiting []Node
	for i, k := range kinds {
		q = append(q, Node{Name: fmt.Sprint(i), Seq: int64(i), Kind: k})
		if held, _ := Decide(q, i, 1); !held {
			waiting = append(waiting, q[i])
		}
	}
	for self := range q {
		want, _ := Decide(q, self, 1)
		for i := range waiting {
			if waiting[i].Name == q[self].Name {
				next, _ := Decide(waiting, i, 1)
				want = next && (kinds[0].Permits == 0 || i == 0)
			}
		}
		if got := First(q, self); got != want {
			t.Fatalf("First(%v, %d) is %v, want %v", kinds, self, got, want)
		}
	}
}

// Contenders leave in any order. At least one of the remaining ones always holds, an exclusive
// one holds alone, and the departure that lets a waiter hold wakes it.
func TestQueueDrainsWhicheverWaiterLeaves(t *testing.T) {
	for _, q := range orders(10) {
		for len(q) > 0 {
			holders, exclusive := 0, 0
			waiting := map[string]string{} // waiter -> the contender that it watches
			for i := range q {
				held, watch := Decide(q, i, 1)
				if held {
					holders++
					if q[i].Kind.Mode == Exclusive {
						exclusive++
					}
				} else {
					waiting[q[i].Name] = q[watch.On[0]].Name
				}
			}
			if holders == 0 || exclusive > 1 || exclusive == 1 && holders > 1 {
				t.Fatalf("%d holders, %d of them exclusive, in %v", holders, exclusive, q)
			}
			gone := rand.IntN(len(q))
			leaver := q[gone].Name
			q = append(q[:gone:gone], q[gone+1:]...)
			for i := range q {
				if watched, ok := waiting[q[i].Name]; ok && watched != leaver {
					if held, _ := Decide(q, i, 1); held {
						t.Fatalf("%s may hold since %s left, but it watched %s", q[i].Name, leaver, watched)
					}
				}
			}
		}
	}
}

// At most n contenders hold one of n permits, no matter which contender leaves. After each
// departure, every contender that may hold now is woken, and so is each that has become one of the first in line, of its
// own window: by so many departures as it can spare, and one more, or by the grant of a contender that it watched.
func TestPermitsAreHandedOnWhicheverHolderLeaves(t *testing.T) {
	for range 5_000 {
		n := 1 + rand.IntN(4)
		var q []Node
		windows := map[string]int{}
		for i := range 1 + rand.IntN(12) {
			q = append(q, Node{Name: fmt.Sprint(i), Seq: int64(i), Kind: Kind{Mode: Permit, Permits: n}})
			windows[q[i].Name] = 1 + rand.IntN(2*n)
		}
		type view struct {
			held  bool
			wait  Watchlist
			watch map[string]bool
		}
		look := func(i int) view {
			held, wait := Decide(q, i, windows[q[i].Name])
			v := view{held, wait, map[string]bool{}}
			for _, w := range wait.On {
				v.watch[q[w].Name] = true
			}
			return v
		}
		views := map[string]view{}
		for i := range q {
			views[q[i].Name] = look(i)
		}
		type event struct {
			of    string
			grant bool // it marks its node; else it leaves
		}
		for len(q) > 0 {
			gone := rand.IntN(len(q))
			events := []event{{of: q[gone].Name}}
			q = append(q[:gone:gone], q[gone+1:]...)
			for len(events) > 0 {
				e := events[0]
				events = events[1:]
				for i := range q {
					v := views[q[i].Name]
					switch {
					case v.held || !v.watch[e.of] || e.grant && !v.wait.Grant:
						continue
					case !e.grant && v.wait.Spare > 0:
						v.wait.Spare--
						views[q[i].Name] = v
						continue
					}
					now := look(i)
					views[q[i].Name] = now
					if now.held {
						events = append(events, event{q[i].Name, true})
					}
				}
			}
			for i := range q {
				had := views[q[i].Name]
				if i < n && !had.held {
					t.Fatalf("%s may have one of %d permits and was not woken", q[i].Name, n)
				}
				if had.held && i >= n {
					t.Fatalf("%d contenders hold %d permits", i+1, n)
				}
				for _, o := range q[:min(i, n)] {
					if had.wait.Grant && had.watch[o.Name] {
						t.Fatalf("%s awaits the grant of %s, which holds", q[i].Name, o.Name)
					}
				}
			}
		}
	}
}

func TestKindsThatDoNotKnowEachOtherConflict(t *testing.T) {
	perm := func(n int) Node { return Node{Kind: Kind{Mode: Permit, Permits: n}} }
	rw := func(m Mode) Node { return Node{Kind: Kind{Mode: m}} }
	for _, c := range []struct {
		q    []Node
		want bool
	}{
		{[]Node{rw(Shared), rw(Exclusive)}, false},
		{[]Node{perm(3), perm(3)}, false},
		{[]Node{perm(3), perm(4)}, false},
		{[]Node{rw(Exclusive), perm(1)}, true},
		{[]Node{perm(1), rw(Shared)}, true},
		{[]Node{perm(1)}, false},
	} {
		if got := Conflict(c.q, len(c.q)-1); (got != nil) != c.want {
			t.Errorf("Conflict(%v) = %v, want %v", c.q, got, c.want)
		}
	}
	for _, c := range []struct {
		q    []Node
		self int
		want bool
	}{
		{[]Node{rw(Exclusive), perm(2)}, 0, true}, // the permit may hold
		{[]Node{rw(Exclusive), rw(Exclusive), perm(2)}, 1, false},
		{[]Node{perm(2), perm(3)}, 0, false},
		{[]Node{perm(2), rw(Exclusive)}, 0, false},
	} {
		if got := Conflict(c.q, c.self); (got != nil) != c.want {
			t.Errorf("Conflict(%v, %d) = %v, want %v", c.q, c.self, got, c.want)
		}
	}
}

func TestParseQueueNodes(t *testing.T) {
	g := GUID{Session: 0x1000a2b3c4d50001, Serial: 7}
	own := Default.Prefix(g, Kind{Mode: Exclusive})
	for _, c := range []struct {
		node    string
		want    Node
		foreign bool
		ok      bool
	}{
		{node: own + "0000000012", want: Node{Kind: Kind{Mode: Exclusive}, Seq: 12, GUID: g}, ok: true},
		{node: Default.Prefix(g, Kind{Mode: Shared}) + "0000000000", want: Node{Kind: Kind{Mode: Shared}, GUID: g}, ok: true},
		{node: "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__0000000003",
			want: Node{Kind: Kind{Mode: Shared}, Seq: 3, GUID: GUID{0x1b9d6bcdbbfd4b2d, 0x9b5dab8dfbbd4bed - 0}}, ok: true},
		{node: Default.Prefix(g, Kind{Mode: Permit, Permits: 12}) + "0000000004", want: Node{Kind: Kind{Mode: Permit, Permits: 12}, Seq: 4, GUID: g}, ok: true},
		{node: "_c_x-__PERM0__0000000004"}, {node: "_c_x-__PERM04__0000000004"}, {node: "_c_x-__PERM-1__0000000004"}, {node: "_c_x-__PERM__0000000004"},
		{node: "__WRIT__0000000003", want: Node{Kind: Kind{Mode: Exclusive}, Seq: 3}, ok: true},
		{node: own + "-000000012", want: Node{Kind: Kind{Mode: Exclusive}, Seq: MaxSequence, GUID: g}, ok: true},
		{node: own + "2147483647", want: Node{Kind: Kind{Mode: Exclusive}, Seq: MaxSequence, GUID: g}, ok: true},
		{node: "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003", foreign: true},
		{node: "2f1a__lock__0000000003", foreign: true},
		{node: own}, {node: own + "000000012"}, {node: own + "00000000012"}, {node: own + "notes"}, {node: "notes"}, {node: ""}, {node: "_c_"}, {node: "lock-"}, {node: "-lock-"},
	} {
		c.want.Name = c.node
		if !c.ok {
			c.want = Node{}
		}
		got, foreign, ok := Default.Parse(c.node)
		if got != c.want || (foreign != nil) != c.foreign || ok != c.ok {
			t.Errorf("Parse(%q) = %+v, %v, %v; want %+v, foreign %v, %v", c.node, got, foreign, ok, c.want, c.foreign, c.ok)
		}
	}
}

func TestGUIDTextRoundTrips(t *testing.T) {
	for range 10_000 {
		g := GUID{int64(rand.Uint64()), rand.Uint64() >> rand.IntN(64)}
		if back := parseGUID(g.String()); back != g {
			t.Fatalf("%v reads back as %v", g, back)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__0000000003")
	f.Add("_c_-__READ__")
	f.Fuzz(func(t *testing.T, node string) {
		for _, d := range Dialects {
			q, other, ok := d.Parse(node)
			if ok && (q.Seq < 0 || q.Seq > MaxSequence || q.Kind.Mode == 0 || other != nil) {
				t.Fatalf("Parse(%q) = %+v, %v, %v in dialect %s", node, q, other, ok, d.Name)
			}
		}
	})
}
