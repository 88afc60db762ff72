package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zklock/go-zklock/internal/operator"
)

// row is a name in the list.
type row struct {
	operator.Lock
	Held    []operator.Contender
	Waiters int             // processes: contenders that wait, apart from candidates
	Stand   int             // candidates, which wait on purpose
	Here    int             // acquisitions of this process that wait
	Oldest  operator.Millis // since when the first of the waiters has waited
}

// rowOf returns the row of a name.
func rowOf(l operator.Lock, here map[string]int) row {
	return row{Lock: l, Held: l.Holders(), Waiters: l.Waiters(), Stand: l.Candidates(), Here: here[l.Name], Oldest: l.Oldest()}
}

// age returns since when one of the holders of a row has held longest, or, if that is not known of one,
// since when it has asked. It is the largest value if that is not known either. Leaders, which hold for
// long on purpose, do not count.
func (r row) age() operator.Millis {
	age := unknown
	for _, c := range r.Held {
		if !c.Candidacy {
			age = min(age, known(cmp.Or(c.HeldSince, c.Since)))
		}
	}
	return age
}

// unknown is behind all times.
const unknown = operator.Millis(1<<63 - 1)

func known(m operator.Millis) operator.Millis { return cmp.Or(m, unknown) }

// sorts are the orders of the list. Rows that compare as equal are in the order of their names.
var sorts = map[string]func(a, b row) int{
	"wait": func(a, b row) int {
		return cmp.Or(cmp.Compare(known(a.Oldest), known(b.Oldest)), cmp.Compare(b.Here, a.Here))
	},
	"waiters": func(a, b row) int { return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(b.Here, a.Here)) },
	"age":     func(a, b row) int { return cmp.Compare(a.age(), b.age()) },
	"name":    func(a, b row) int { return 0 },
}

// rowsOf returns the names that contain a filter, in an order. The names in locks are in byte order.
func rowsOf(s state, filter, by string) []row {
	var rows []row
	for _, l := range s.list.Locks {
		if contains(l.Name, filter) {
			rows = append(rows, rowOf(l, s.here))
		}
	}
	slices.SortStableFunc(rows, sorts[by])
	return rows
}

// total is the head line of the list: what is stuck, and which process must move.
type total struct {
	Names, Here int
	Waiters     int // processes
	Unsent      int // writes of this process that wait to be sent
	Candidates  int // that wait on purpose
	Deadlocks   int
	Longest     operator.Lock // the name with the longest wait; "" if nothing waits
	Since       operator.Millis
	Holder      operator.Contender // the first one of Longest
	Held        bool               // there is one
	Full        string             // the session with most bytes of queue nodes, if these are many
	MoverName   string             // "": the holder waits for no other name
	Mover       operator.Contender // the holder at the end of the chain
}

// muchShown is how many bytes of queue nodes of one session are worth a word: half of what a client puts on one
// by default.
const muchShown = (1<<20 - 1) / 16 * 7

// fullest describes the session with most bytes of queue nodes; "" if these are few.
func fullest(locks []operator.Lock) string {
	bytes := make(map[string]int)
	most, of := "", operator.Contender{}
	for _, l := range locks {
		for _, c := range l.Contenders {
			if c.Session == "0x0" {
				continue // not known, or none
			}
			bytes[c.Session] += 4 + len(l.Path) + len("/") + len(c.Node) // as a server counts
			if most == "" || bytes[c.Session] > bytes[most] {
				most, of = c.Session, c
			}
		}
	}
	if bytes[most] < muchShown {
		return ""
	}
	return fmt.Sprintf("%s KiB of queue nodes on session %s of %s", thousands(bytes[most]>>10), most, of.Process())
}

// totalOf returns the head line of all names that were read.
func totalOf(s state) (t total) {
	t.Deadlocks = len(s.list.register.Dead)
	waiting := make(map[string]bool)
	for _, l := range s.list.Locks {
		r := rowOf(l, s.here)
		t.Names++
		for _, c := range l.Contenders {
			if !c.Held && !c.Candidacy {
				waiting[c.Identity()] = true
			}
		}
		t.Candidates += r.Stand
		if r.Oldest != 0 && (t.Since == 0 || r.Oldest < t.Since) {
			t.Longest, t.Since = l, r.Oldest
		}
	}
	t.Waiters = len(waiting)
	for _, n := range s.here {
		t.Here += n
	}
	t.Unsent, t.Full = s.unsent, fullest(s.list.Locks)
	if held := t.Longest.Holders(); len(held) > 0 {
		t.Holder, t.Held = held[0], true
		if name, c, ok := operator.Mover(t.Longest, s.list.Locks, s.list.register); ok && name != t.Longest.Name {
			t.MoverName, t.Mover = name, c
		}
	}
	return t
}

// part is what one process has in one queue.
type part struct {
	Name string
	operator.Contender
	Behind int // how many contenders wait for the name, if it holds it
}

// partsOf returns everything that the process of a query holds and waits for: what it holds first,
// those names with the most waiters at the front. waiting has the names that it waits for.
func partsOf(s state, q query) (parts []part, waiting []operator.Lock) {
	for _, l := range s.list.Locks {
		waits := func(c operator.Contender) bool { return q.shows(c) && !c.Held && !c.Candidacy }
		if slices.ContainsFunc(l.Contenders, waits) {
			waiting = append(waiting, l)
		}
		for _, c := range l.Contenders {
			if !q.shows(c) {
				continue
			}
			p := part{Name: l.Name, Contender: c}
			if c.Held {
				p.Behind = l.Waiters()
			}
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		switch {
		case a.Held != b.Held && a.Held:
			return -1
		case a.Held != b.Held:
			return 1
		}
		return cmp.Compare(b.Behind, a.Behind)
	})
	return parts, waiting
}
