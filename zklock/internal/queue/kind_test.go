package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// brokenRules returns the rules that the rows of the table break. Each rule has its reason.
func brokenRules() (broken []string) {
	breaks := func(m Mode, rule string) { broken = append(broken, fmt.Sprintf("%v: %s", m, rule)) }
	for m := Exclusive; int(m) < len(rows); m++ {
		r := rows[m]
		if r.Name == "" {
			breaks(m, "a kind has a name, since it stands in the data of queue nodes")
		}
		if !m.Excludes(Exclusive) {
			breaks(m, "a writer holds alone, whatever kinds there are")
		}
		if m > 15 {
			breaks(m, "a set of modes has room for 16")
		}
		if r.Joins && !r.HandsOver {
			breaks(m, "goroutines join the hold of a place that takes part in hand-over")
		}
		if r.Markers[FamilyReadWrite] == "" {
			breaks(m, "zklock's own dialect has all kinds")
		}
		if r.Joins && m.Excludes(m) {
			breaks(m, "holders of one process do not share a hold if the kind excludes itself")
		}
		if r.Keeps && !r.HandsOver {
			breaks(m, "a place that is kept goes on by a hand-over")
		}
		if r.Counted && (r.Joins || r.HandsOver || r.InAll || r.Excludes != 0 || r.LowersTo != 0) {
			breaks(m, "a counted kind decides by its number alone, and each permit is a place of its own")
		}
		for o := Exclusive; int(o) < len(rows); o++ {
			other := rows[o]
			if m.Excludes(o) != o.Excludes(m) {
				breaks(m, "exclusion is mutual, or the later of two contenders holds while the earlier one does")
			}
			if m.Covers(o) && m != o && r.HandsOver && other.HandsOver && r.LowersTo != o {
				breaks(m, "a place that may go to another kind can become that kind's for good")
			}
			if r.HandsOver && other.HandsOver && !r.Joins && !m.Excludes(o) {
				breaks(m, "a kind that is handed over joins, or excludes all that are: the local queue knows no other")
			}
			if m.Lowers() && !other.Counted && !m.Excludes(o) {
				breaks(m, "a kind that can be lowered holds alone: a View reads only the first contender's data again")
			}
			if m != o && r.Name == other.Name {
				breaks(m, "two kinds have two names")
			}
			if r.InAll && other.InAll && m != o && m.Covers(o) == o.Covers(m) {
				breaks(m, "of two kinds in an All, one covers the other: that one stays if both want one name")
			}
			for family, marker := range r.Markers {
				if m != o && marker != "" && strings.Contains(other.Markers[family], marker) {
					breaks(m, "no marker of a family contains another: a name is of one kind")
				}
			}
		}
		if to := r.LowersTo; to != 0 && (!m.Covers(to) || !rows[to].Joins) {
			breaks(m, "a kind is lowered to one that it covers, so that nothing which it kept out gets in")
		}
	}
	return broken
}

// Each row of the table keeps the rules, and each rule is broken by a row that should break it.
func TestRows(t *testing.T) {
	if broken := brokenRules(); broken != nil {
		t.Errorf("the table breaks its rules:\n%s", strings.Join(broken, "\n"))
	}
	was := excluded
	defer func() { rows, excluded = table(), was }()
	const next = NewKind
	for rule, row := range map[string]Row{
		"a kind has a name":                   {},
		"join the hold of a place":            {Name: "x", Joins: true},
		"own dialect has all kinds":           {Name: "x"},
		"holders of one process do not share": {Name: "x", Joins: true, Excludes: ModesOf(next)},
		"goes on by a hand-over":              {Name: "x", Keeps: true},
		"by its number alone":                 {Name: "x", Counted: true, InAll: true},
		"become that kind's for good":         {Name: "x", HandsOver: true, Excludes: ModesOf(next, Shared)},
		"the local queue knows no other":      {Name: "x", HandsOver: true, Excludes: ModesOf(next)},
		"a View reads only":                   {Name: "x", LowersTo: Shared, Excludes: ModesOf(next)},
		"two names":                           {Name: "shared"},
		"one covers the other":                {Name: "x", InAll: true},
		"a name is of one kind":               {Name: "x", Markers: [Families]string{FamilyReadWrite: "READ__"}},
		"is lowered to one that it covers":    {Name: "x", LowersTo: Permit},
	} {
		rows = table()
		if m := AddForTest(row); m != next {
			t.Fatalf("the mode of a new row is %d, want %d", m, next)
		}
		if broken := brokenRules(); !slices.ContainsFunc(broken, func(s string) bool { return strings.Contains(s, rule) }) {
			t.Errorf("the row %+v should break the rule %q, and breaks %q", row, rule, broken)
		}
	}
	rows = table()
	for range 16 {
		AddForTest(Row{Name: "x"})
	}
	if broken := brokenRules(); !slices.ContainsFunc(broken, func(s string) bool { return strings.Contains(s, "room for 16") }) {
		t.Errorf("%d rows break %q, and not the rule that there are at most 16", len(rows), broken)
	}
	// The kind of the example in package zklock keeps them.
	rows = table()
	AddForTest(Row{Name: "update", Markers: [Families]string{FamilyReadWrite: "__UPDT__"}, Excludes: ModesOf(Exclusive, next), InAll: true})
	if broken := brokenRules(); broken != nil {
		t.Errorf("the example breaks the rules:\n%s", strings.Join(broken, "\n"))
	}
}

// What the table's cells mean for the kinds that there are, as a table of its own: a change of a cell
// is a change here, too.
func TestKindsExcludeAndCover(t *testing.T) {
	for _, c := range []struct {
		m, o             Mode
		excludes, covers bool
	}{
		{Exclusive, Exclusive, true, true},
		{Exclusive, Shared, true, true},
		{Shared, Exclusive, true, false},
		{Shared, Shared, false, true},
		{Permit, Permit, false, true},
		{Permit, Shared, false, false},
		{Exclusive, Permit, true, false},
	} {
		if c.m.Excludes(c.o) != c.excludes || c.m.Covers(c.o) != c.covers {
			t.Errorf("%v and %v: excludes %v, covers %v; want %v, %v", c.m, c.o, c.m.Excludes(c.o), c.m.Covers(c.o), c.excludes, c.covers)
		}
	}
	for _, c := range []struct {
		m                            Mode
		handsOver, joins, keeps, all bool
		lowersTo                     Mode
	}{
		{Exclusive, true, false, true, true, Shared},
		{Shared, true, true, true, true, Shared},
		{Permit, false, false, false, false, 0},
		{m: Mode(200)},
	} {
		m := c.m
		if m.HandsOver() != c.handsOver || m.Joins() != c.joins || m.Keeps() != c.keeps || m.InAll() != c.all || m.Lowered() != c.lowersTo {
			t.Errorf("%v: handed over %v, joined %v, kept %v, in an All %v, lowered to %v", m, m.HandsOver(), m.Joins(), m.Keeps(), m.InAll(), m.Lowered())
		}
	}
	if s := Mode(200).String(); s != "mode(200)" {
		t.Errorf("an unknown mode is %q", s)
	}
}

// The data of a node, which any client may write, lower a writer's contender to a reader's. They
// change no other contender, and to no other mode.
func TestDataLowersWritersOnly(t *testing.T) {
	for _, k := range []Kind{{Mode: Exclusive}, {Mode: Shared}, {Mode: Permit, Permits: 3}} {
		for _, says := range []string{"", "exclusive", "shared", "permit", "mode(0)"} {
			want := k
			if k.Mode == Exclusive && says == "shared" {
				want = Kind{Mode: Shared}
			}
			if got := Effective(k, Data{Mode: says}); got != want {
				t.Errorf("%v with the mode %q in its data counts as %v, want %v", k, says, got, want)
			}
		}
	}
}

// Decide and First ask the table for a kind that they do not know, too. All queues of up to seven
// writers, readers and updaters: a contender holds if it excludes none ahead, else it watches the
// nearest of those, and it is the first in line if each of those holds.
func TestDecideAsksTheTable(t *testing.T) {
	was := excluded
	defer func() { rows, excluded = table(), was }()
	const update, most = NewKind, 7
	AddForTest(Row{Name: "update", Excludes: ModesOf(update)})
	modes := []Mode{Exclusive, Shared, update}
	waitsFor := func(m, o Mode) bool { return m == Exclusive || o == Exclusive || m == update && o == update }
	q := make([]Node, most)
	for order := range 3 * 3 * 3 * 3 * 3 * 3 * 3 {
		for i := range q {
			q[i].Kind.Mode = modes[order%3]
			order /= 3
		}
		held := make([]bool, most)
		for self := range q {
			nearest, first := -1, true
			for i := range self {
				if waitsFor(q[self].Kind.Mode, q[i].Kind.Mode) {
					nearest, first = i, first && held[i]
				}
			}
			var watch Watchlist
			held[self], watch = Decide(q, self, 1)
			if held[self] != (nearest < 0) || !held[self] && (len(watch.On) != 1 || watch.On[0] != nearest) || First(q, self) != first {
				t.Fatalf("in %v, contender %d holds: %v, watches %v, is the first in line: %v; want that it watches %d, and is the first: %v",
					q, self, held[self], watch, First(q, self), nearest, first)
			}
		}
	}
}
