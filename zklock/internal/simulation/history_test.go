package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// history is what workers saw of each name, from calls to returns. The rules that judge
// it know nothing of queues and leases. Its clock counts events, so two events at one
// virtual instant still have an order.
//
// An operation took effect at some moment between its call and its return. A history is right
// if the lock behaves with some choice of these moments. A lock was certainly held from the
// return of its acquisition to the call of its release. Two such stays that exclude each other
// and overlap are wrong whatever the moments were. If none do, each acquisition can have taken
// effect at its return and each release at its call, and all other choices have the same order.
// So it is enough to look at the stays, and the judge is exact.
type history struct {
	now    int64
	eras   int // how often the ensemble has lost transactions
	owners int
	names  map[string][]operation
	modes  map[string]map[zklock.Mode]bool
}

// operation is an act with the times of its call and its return.
type operation struct {
	act
	call, ret int64
}

// act is one operation on a lock; owner is the number of a handle.
type act struct {
	what  string // acquire, release, downgrade
	mode  zklock.Mode
	owner int
	token zklock.Token

	permits int // that it asked for; 0: for the whole lock
}

func (h *history) tick() int64 {
	h.now++
	return h.now
}

func (h *history) add(g *grip, what string, call, ret int64) {
	if g.joined {
		return // it ends before the handle that it joined
	}
	if h.names == nil {
		h.names, h.modes = map[string][]operation{}, map[string]map[zklock.Mode]bool{}
	}
	for name, mode := range g.modes {
		if what != "downgrade" && slices.Contains(g.gone, name) {
			continue // an operator has ended it
		}
		if h.modes[name] == nil {
			h.modes[name] = map[zklock.Mode]bool{}
		}
		h.modes[name][mode] = true
		if what == "downgrade" {
			h.modes[name][zklock.Shared] = true
		}
		h.names[name] = append(h.names[name], operation{act{what, mode, g.owner, g.eraToken(), g.permits}, call, ret})
	}
}

func (h *history) granted(g *grip) {
	h.owners++
	g.owner, g.era = h.owners, h.eras
	h.add(g, "acquire", g.called, g.since)
}

func (h *history) ended(g *grip, call, ret int64) { h.add(g, "release", call, ret) }

// broken records that an operator ended a handle's place of a name, at some moment after the
// handle was last found valid.
func (h *history) broken(g *grip, name string, now int64) {
	alone := *g
	alone.modes = map[string]zklock.Mode{name: g.modes[name]}
	h.add(&alone, "release", g.seen, now)
}

func (h *history) downgraded(g *grip, call int64) { h.add(g, "downgrade", call, h.tick()) }

// lost records that a handle ended at some moment after it was last found valid.
func (h *history) lost(g *grip, now int64) { h.add(g, "release", g.seen, now) }

// stay is a time when a lock was certainly held.
type stay struct {
	act           // its acquisition
	from, to      int64
	shared        int64 // since when it was a reader's; later than to: it never became one
	leave, lowers bool  // in a list of events: what the event is, if not the beginning
}

// stays returns the stays in a history of one name.
func stays(ops []operation) (all []stay) {
	of := make(map[int]int)
	for _, op := range ops {
		switch at := of[op.owner]; op.what {
		case "acquire":
			of[op.owner] = len(all)
			all = append(all, stay{act: op.act, from: op.ret, to: math.MaxInt64, shared: math.MaxInt64})
		case "downgrade":
			all[at].shared = op.call
		case "release":
			all[at].to = min(all[at].to, op.call)
		}
	}
	return all
}

// rule judges the acquisitions of a lock. Permits are held by no more than any of their holders asked for. Without permits it is a
// reader-writer lock, and a mutex if all of its holders are writers: a writer's token is greater than all tokens
// before it, and a reader's is greater than those of all writers before it.
func rule(ops []operation) bool {
	var events []stay
	for _, s := range stays(ops) {
		events = append(events, s)
		if s.to == s.from {
			continue // it ended at the moment of its grant
		}
		if s.shared < s.to {
			lowered := s
			lowered.from, lowered.lowers = s.shared, true
			events = append(events, lowered)
		}
		if s.to < math.MaxInt64 {
			left := s
			left.from, left.leave = s.to, true
			events = append(events, left)
		}
	}
	slices.SortStableFunc(events, func(a, b stay) int {
		if a.from != b.from {
			return cmp.Compare(a.from, b.from)
		}
		return cmp.Compare(order(a), order(b))
	})
	holders, writer := make(map[int]int), 0 // how many permits each asked for
	enter := func(e stay) {
		if e.to == e.from {
			return
		}
		if holders[e.owner] = e.permits; e.mode == zklock.Exclusive {
			writer = e.owner
		}
	}
	var wrote, read zklock.Token
	for _, e := range events {
		switch {
		case e.leave:
			if delete(holders, e.owner); writer == e.owner {
				writer = 0
			}
		case e.lowers:
			writer = 0
		case e.permits > 0:
			least := e.permits
			for _, n := range holders {
				least = min(least, n)
			}
			if len(holders) >= least {
				return false
			}
			enter(e)
		case e.mode == zklock.Exclusive:
			if len(holders) > 0 || e.token.Compare(wrote) <= 0 || e.token.Compare(read) <= 0 {
				return false
			}
			wrote = e.token
			enter(e)
		default:
			if writer != 0 || e.token.Compare(wrote) <= 0 {
				return false
			}
			if enter(e); e.token.Compare(read) > 0 {
				read = e.token
			}
		}
	}
	return true
}

// order puts the events of one time into an order: those that let others in are first.
func order(e stay) int {
	switch {
	case e.leave:
		return 0
	case e.lowers:
		return 1
	}
	return 2
}

// change is a read of a register and the transaction built on it, with their times. Each writes
// another value.
type change struct {
	read, wrote string
	call, ret   int64
}

// guarded reports whether a register did not change between the read and the write of any
// change. Each then follows the one whose value it has read, and there is one order only: they
// can have taken effect in it if no change returned before an earlier one was called.
func guarded(changes []change) bool {
	next := make(map[string]change)
	for _, c := range changes {
		if _, forks := next[c.read]; forks {
			return false
		}
		next[c.read] = c
	}
	value, now := "", int64(0)
	for range changes {
		c, ok := next[value]
		if now = max(now, c.call); !ok || now > c.ret {
			return false
		}
		value = c.wrote
	}
	return true
}

// judge checks the history of every name. It returns the faults and the number of
// histories.
func (m *model) judge() (wrong []string, histories int) {
	refuse := func(what, name string, history any) {
		wrong = append(wrong, fmt.Sprintf("history: %s does not behave like a %s: %+v", name, what, history))
	}
	for _, name := range slices.Sorted(maps.Keys(m.history.names)) {
		ops, modes := m.history.names[name], m.history.modes[name]
		if m.w.p.operator || len(ops) == 0 { // an operator's deletes end exclusion; only registers that Txn guards stay correct
			continue
		}
		histories++
		what := "fenced lock"
		if modes[zklock.Permit] {
			what = "semaphore"
		}
		if !rule(ops) {
			refuse(what, name, ops)
		}
	}
	changes := map[string][]change{}
	for _, c := range m.writes {
		if !c.applied {
			continue
		}
		if c.done == 0 {
			c.done = math.MaxInt64
		}
		changes[c.name] = append(changes[c.name], change{c.read, c.value, c.call, c.done})
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if histories++; !guarded(changes[name]) {
			refuse("guarded register", name, changes[name])
		}
	}
	return wrong, histories
}

// The rules accept correct histories and reject wrong ones.
func TestJudge(t *testing.T) {
	token := func(n int64) zklock.Token { return zklock.Token{Zxid: n} }
	op := func(call, ret int64, a act) operation { return operation{a, call, ret} }
	x, s := zklock.Exclusive, zklock.Shared
	for _, c := range []struct {
		what string
		ok   bool
		ops  []operation
	}{
		{"one after the other", true, []operation{op(1, 4, act{"acquire", x, 1, token(1), 0}), op(5, 8, act{"release", x, 1, token(1), 0}), op(2, 7, act{"acquire", x, 2, token(2), 0})}},
		{"two at a time", false, []operation{op(1, 4, act{"acquire", x, 1, token(1), 0}), op(6, 8, act{"release", x, 1, token(1), 0}), op(2, 5, act{"acquire", x, 2, token(2), 0})}},
		{"one ends at the moment of its grant", true, []operation{op(1, 4, act{"acquire", x, 1, token(1), 0}), op(4, 5, act{"release", x, 1, token(1), 0}), op(2, 7, act{"acquire", x, 2, token(2), 0})}},
		{"a grant in between", false, []operation{op(1, 2, act{"acquire", x, 1, token(1), 0}), op(3, 4, act{"acquire", x, 2, token(2), 0}), op(4, 5, act{"release", x, 2, token(2), 0}), op(6, 7, act{"release", x, 1, token(1), 0})}},
		{"one is never released", false, []operation{op(1, 2, act{"acquire", x, 1, token(1), 0}), op(3, 4, act{"acquire", x, 2, token(2), 0})}},
		{"falling tokens", false, []operation{op(1, 2, act{"acquire", x, 1, token(2), 0}), op(3, 4, act{"release", x, 1, token(2), 0}), op(5, 6, act{"acquire", x, 2, token(1), 0})}},
		{"readers together", true, []operation{op(1, 2, act{"acquire", s, 1, token(1), 0}), op(3, 4, act{"acquire", s, 2, token(1), 0}), op(5, 6, act{"release", s, 1, token(1), 0})}},
		{"writer while a reader holds", false, []operation{op(1, 2, act{"acquire", s, 1, token(1), 0}), op(3, 4, act{"acquire", x, 2, token(2), 0}), op(5, 6, act{"release", s, 1, token(1), 0})}},
		{"reader while a writer holds", false, []operation{op(1, 2, act{"acquire", x, 1, token(1), 0}), op(3, 4, act{"acquire", s, 2, token(2), 0}), op(5, 6, act{"release", x, 1, token(1), 0})}},
		{"reader while a downgraded writer holds", true, []operation{op(1, 2, act{"acquire", x, 1, token(1), 0}), op(3, 6, act{"downgrade", x, 1, token(1), 0}), op(4, 5, act{"acquire", s, 2, token(2), 0})}},
		{"writer while a downgraded writer holds", false, []operation{op(1, 2, act{"acquire", x, 1, token(1), 0}), op(3, 4, act{"downgrade", x, 1, token(1), 0}), op(5, 6, act{"acquire", x, 2, token(2), 0})}},
		{"reader with a writer's token", false, []operation{op(1, 2, act{"acquire", x, 1, token(2), 0}), op(3, 4, act{"release", x, 1, token(2), 0}), op(5, 6, act{"acquire", s, 2, token(2), 0})}},
		{"second holder of two permits", true, []operation{op(1, 2, act{"acquire", zklock.Permit, 1, token(1), 2}), op(3, 4, act{"acquire", zklock.Permit, 2, token(2), 2})}},
		{"third holder while one asked for two permits", false, []operation{op(1, 2, act{"acquire", zklock.Permit, 1, token(1), 2}), op(3, 4, act{"acquire", zklock.Permit, 2, token(2), 3}), op(5, 6, act{"acquire", zklock.Permit, 3, token(3), 3})}},
		{"one that asks for two permits is the third holder", false, []operation{op(1, 2, act{"acquire", zklock.Permit, 1, token(1), 3}), op(3, 4, act{"acquire", zklock.Permit, 2, token(2), 3}), op(5, 6, act{"acquire", zklock.Permit, 3, token(3), 2})}},
		{"third holder after the one that asked for two permits", true, []operation{op(1, 2, act{"acquire", zklock.Permit, 1, token(1), 2}), op(3, 4, act{"release", zklock.Permit, 1, token(1), 2}), op(5, 6, act{"acquire", zklock.Permit, 2, token(2), 3}), op(7, 8, act{"acquire", zklock.Permit, 3, token(3), 3}), op(9, 10, act{"acquire", zklock.Permit, 4, token(4), 3})}},
		{"third holder of two permits", false, []operation{op(1, 2, act{"acquire", zklock.Permit, 1, token(1), 2}), op(3, 4, act{"acquire", zklock.Permit, 2, token(2), 2}), op(5, 6, act{"acquire", zklock.Permit, 3, token(3), 2})}},
	} {
		if got := rule(c.ops); got != c.ok {
			t.Errorf("%s: judged %v, want %v", c.what, got, c.ok)
		}
	}
	for _, c := range []struct {
		what    string
		ok      bool
		changes []change
	}{
		{"changes in turn", true, []change{{"a", "b", 2, 5}, {"", "a", 1, 3}, {"b", "c", 6, math.MaxInt64}}},
		{"lost update", false, []change{{"", "a", 1, 4}, {"", "b", 2, 3}}},
		{"a value that was never there", false, []change{{"", "a", 1, 2}, {"b", "c", 3, 4}}},
		{"a change from the future", false, []change{{"", "a", 3, 4}, {"a", "b", 1, 2}}},
	} {
		if got := guarded(c.changes); got != c.ok {
			t.Errorf("%s: judged %v, want %v", c.what, got, c.ok)
		}
	}
}
