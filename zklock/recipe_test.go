package zklock

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// blocks says, as briefly as can be, whom a contender has to wait for.
func blocks(ahead, self Mode) bool { return ahead == Exclusive || self == Exclusive }

// Against a brute-force model: whoever holds is blocked by nobody ahead, whoever
// waits is blocked by the one it watches, and by nobody between the two.
func TestDecideAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modes := rapid.SliceOfN(rapid.SampledFrom([]Mode{Exclusive, Shared}), 1, 12).Draw(t, "modes")
		q := make([]queued, len(modes))
		for i, m := range modes {
			q[i] = queued{node: fmt.Sprint(i), seq: int64(i), kind: kind{mode: m}}
		}
		for self := range q {
			nearest := -1
			for i := range self {
				if blocks(q[i].kind.mode, q[self].kind.mode) {
					nearest = i
				}
			}
			held, watch := decide(q, self)
			if held != (nearest < 0) || !held && (len(watch) != 1 || watch[0] != nearest) {
				t.Fatalf("decide(%v, %d) = %v, %d; the nearest that blocks is %d", modes, self, held, watch, nearest)
			}
		}
	})
}

// However contenders leave, some contender that is left holds, exclusive ones
// alone, and everybody who waits is woken by a departure that can let it in.
func TestQueueDrainsWhoeverLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modes := rapid.SliceOfN(rapid.SampledFrom([]Mode{Exclusive, Shared}), 1, 10).Draw(t, "modes")
		var q []queued
		for i, m := range modes {
			q = append(q, queued{node: fmt.Sprint(i), seq: int64(i), kind: kind{mode: m}})
		}
		for len(q) > 0 {
			holders, exclusive := 0, 0
			waiting := map[string]string{} // waiter -> whom it watches
			for i := range q {
				held, watch := decide(q, i)
				if held {
					holders++
					if q[i].kind.mode == Exclusive {
						exclusive++
					}
				} else {
					waiting[q[i].node] = q[watch[0]].node
				}
			}
			if holders == 0 || exclusive > 1 || exclusive == 1 && holders > 1 {
				t.Fatalf("%d holders, %d of them exclusive, in %v", holders, exclusive, q)
			}
			gone := rapid.IntRange(0, len(q)-1).Draw(t, "gone")
			leaver := q[gone].node
			q = append(q[:gone:gone], q[gone+1:]...)
			for i := range q {
				if watched, ok := waiting[q[i].node]; ok && watched != leaver {
					if held, _ := decide(q, i); held {
						t.Fatalf("%s may hold since %s left, but watched %s", q[i].node, leaver, watched)
					}
				}
			}
		}
	})
}

// Permits: at most n hold, whoever leaves; and when somebody leaves, everybody
// who may hold now, or who has become the first in line, is told: by a departure
// it watched, or by the grant of the one it watched.
func TestPermitsAreHandedOnWhoeverLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "permits")
		var q []queued
		for i := range rapid.IntRange(1, 12).Draw(t, "contenders") {
			q = append(q, queued{node: fmt.Sprint(i), seq: int64(i), kind: kind{mode: Permit, permits: n}})
		}
		type view struct {
			held  bool
			watch map[string]bool
		}
		look := func(i int) view {
			held, watch := decide(q, i)
			v := view{held, map[string]bool{}}
			for _, w := range watch {
				v.watch[q[w].node] = true
			}
			return v
		}
		views := map[string]view{}
		for i := range q {
			views[q[i].node] = look(i)
		}
		for len(q) > 0 {
			gone := rapid.IntRange(0, len(q)-1).Draw(t, "gone")
			events := []string{q[gone].node} // names whose watchers are told
			q = append(q[:gone:gone], q[gone+1:]...)
			for len(events) > 0 {
				event := events[0]
				events = events[1:]
				for i := range q {
					v := views[q[i].node]
					if v.held || !v.watch[event] {
						continue
					}
					now := look(i)
					views[q[i].node] = now
					if now.held {
						events = append(events, q[i].node) // it marks its node
					}
				}
			}
			for i := range q {
				fresh, had := look(i), views[q[i].node]
				if i < n && !had.held {
					t.Fatalf("%s of %d has a permit and was not told", q[i].node, n)
				}
				if had.held && i >= n {
					t.Fatalf("%d hold with %d permits", i+1, n)
				}
				if i == n && len(fresh.watch) != len(had.watch) {
					t.Fatalf("%s is the first in line and does not watch all holders", q[i].node)
				}
			}
		}
	})
}

func TestKindsThatDoNotKnowEachOtherConflict(t *testing.T) {
	perm := func(n int) queued { return queued{kind: kind{mode: Permit, permits: n}} }
	rw := func(m Mode) queued { return queued{kind: kind{mode: m}} }
	for _, c := range []struct {
		q    []queued
		want bool
	}{
		{[]queued{rw(Shared), rw(Exclusive)}, false},
		{[]queued{perm(3), perm(3)}, false},
		{[]queued{perm(3), perm(4)}, true},
		{[]queued{rw(Exclusive), perm(1)}, true},
		{[]queued{perm(1), rw(Shared)}, true},
		{[]queued{perm(1)}, false},
	} {
		if _, got := conflict(c.q, len(c.q)-1); got != c.want {
			t.Errorf("conflict(%v) = %v, want %v", c.q, got, c.want)
		}
	}
}

func TestParseQueueNodes(t *testing.T) {
	g := guid{session: 0x1000a2b3c4d50001, serial: 7}
	own := dialectZklock.prefix(g, kind{mode: Exclusive})
	for _, c := range []struct {
		node    string
		want    queued
		foreign bool
		ok      bool
	}{
		{node: own + "0000000012", want: queued{kind: kind{mode: Exclusive}, seq: 12, guid: g}, ok: true},
		{node: dialectZklock.prefix(g, kind{mode: Shared}) + "0000000000", want: queued{kind: kind{mode: Shared}, guid: g}, ok: true},
		{node: "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__0000000003",
			want: queued{kind: kind{mode: Shared}, seq: 3, guid: guid{0x1b9d6bcdbbfd4b2d, 0x9b5dab8dfbbd4bed - 0}}, ok: true},
		{node: dialectZklock.prefix(g, kind{mode: Permit, permits: 12}) + "0000000004", want: queued{kind: kind{mode: Permit, permits: 12}, seq: 4, guid: g}, ok: true},
		{node: "_c_x-__PERM0__0000000004"}, {node: "_c_x-__PERM04__0000000004"}, {node: "_c_x-__PERM-1__0000000004"}, {node: "_c_x-__PERM__0000000004"},
		{node: "__WRIT__0000000003", want: queued{kind: kind{mode: Exclusive}, seq: 3}, ok: true},
		{node: own + "-000000012", want: queued{kind: kind{mode: Exclusive}, seq: maxSequence, guid: g}, ok: true},
		{node: own + "2147483647", want: queued{kind: kind{mode: Exclusive}, seq: maxSequence, guid: g}, ok: true},
		{node: "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003", foreign: true},
		{node: "2f1a__lock__0000000003", foreign: true},
		{node: own}, {node: own + "000000012"}, {node: own + "00000000012"}, {node: own + "notes"}, {node: "notes"}, {node: ""}, {node: "_c_"}, {node: "lock-"}, {node: "-lock-"},
	} {
		c.want.node = c.node
		if !c.ok {
			c.want = queued{}
		}
		got, foreign, ok := dialectZklock.parse(c.node)
		if got != c.want || (foreign != nil) != c.foreign || ok != c.ok {
			t.Errorf("parse(%q) = %+v, %v, %v; want %+v, foreign %v, %v", c.node, got, foreign, ok, c.want, c.foreign, c.ok)
		}
	}
}

func TestGUIDTextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := guid{rapid.Int64().Draw(t, "session"), rapid.Uint64().Draw(t, "serial")}
		if back, ok := parseGUID(g.String()); !ok || back != g {
			t.Fatalf("%v reads back as %v, %v", g, back, ok)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__0000000003")
	f.Add("_c_-__READ__")
	f.Fuzz(func(t *testing.T, node string) {
		for _, d := range dialects {
			q, other, ok := d.parse(node)
			if ok && (q.seq < 0 || q.seq > maxSequence || q.kind.mode == 0 || other != nil) {
				t.Fatalf("parse(%q) = %+v, %v in dialect %s", node, q, other, d.name)
			}
		}
	})
}

func FuzzDescribe(f *testing.F) {
	f.Add([]byte(`{"host":"a","pid":1,"mode":"shared","since":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := describe(queued{node: "n"}, data)
		if len(c.Label) > maxLabel || len(c.Host) > maxHost || len(c.Trace) > maxTrace {
			t.Fatalf("describe let long texts through: %+v", c)
		}
	})
}
