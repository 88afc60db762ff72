package zklock_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/zklock/go-zklock/zklock"
)

// history is what workers saw of each name, from calls to returns. The models that judge
// it know nothing of queues and leases. Its clock counts events, so two events at one
// virtual instant still have an order.
type history struct {
	now    int64
	owners int
	names  map[string][]porcupine.Operation
	modes  map[string]map[zklock.Mode]bool
}

// act is one operation on a lock; owner is the number of a handle.
type act struct {
	what  string // acquire, release, downgrade
	mode  zklock.Mode
	owner int
	token zklock.Token
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
		h.names, h.modes = map[string][]porcupine.Operation{}, map[string]map[zklock.Mode]bool{}
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
		h.names[name] = append(h.names[name], porcupine.Operation{
			ClientId: g.worker.id, Input: act{what, mode, g.owner, g.lock.Token()}, Call: call, Return: ret,
		})
	}
}

func (h *history) granted(g *grip) {
	h.owners++
	g.owner = h.owners
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

// tenure is the state of a lock: its holders, and the greatest tokens so far.
type tenure struct {
	writer  int    // its number; 0: there is none
	readers string // their numbers, in order
	wrote   zklock.Token
	read    zklock.Token
}

// ownerMutex is a mutex that only its owner can release.
var ownerMutex = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		a := input.(act)
		if a.what == "acquire" {
			return state.(int) == 0, a.owner
		}
		return state.(int) == a.owner, 0
	},
	DescribeOperation: describeAct,
}

// fencedMutex is a mutex whose tokens rise.
var fencedMutex = porcupine.Model{
	Init: func() any { return tenure{} },
	Step: func(state, input, _ any) (bool, any) {
		s, a := state.(tenure), input.(act)
		if a.what == "acquire" {
			return s.writer == 0 && a.token.Compare(s.wrote) > 0, tenure{writer: a.owner, wrote: a.token}
		}
		return s.writer == a.owner, tenure{wrote: s.wrote}
	},
	DescribeOperation: describeAct,
}

// fencedRW is a reader-writer lock. A writer's token is greater than all tokens before it,
// a reader's is greater than those of all writers before it.
var fencedRW = porcupine.Model{
	Init: func() any { return tenure{} },
	Step: func(state, input, _ any) (bool, any) {
		s, a := state.(tenure), input.(act)
		me := fmt.Sprintf("%06d,", a.owner)
		switch {
		case a.what == "acquire" && a.mode == zklock.Exclusive:
			ok := s.writer == 0 && s.readers == "" && a.token.Compare(s.wrote) > 0 && a.token.Compare(s.read) > 0
			s.writer, s.wrote = a.owner, a.token
			return ok, s
		case a.what == "acquire":
			ok := s.writer == 0 && a.token.Compare(s.wrote) > 0
			s.readers = insert(s.readers, me)
			if a.token.Compare(s.read) > 0 {
				s.read = a.token
			}
			return ok, s
		case a.what == "downgrade":
			ok := s.writer == a.owner
			s.writer, s.readers = 0, insert(s.readers, me)
			return ok, s
		case s.writer == a.owner:
			s.writer = 0
			return true, s
		}
		ok := strings.Contains(s.readers, me)
		s.readers = strings.Replace(s.readers, me, "", 1)
		return ok, s
	},
	DescribeOperation: describeAct,
}

// insert keeps numbers of fixed width in order.
func insert(list, number string) string {
	at := 0
	for at < len(list) && list[at:at+len(number)] < number {
		at += len(number)
	}
	return list[:at] + number + list[at:]
}

// semaphore is a semaphore with a fixed number of permits.
var semaphore = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		s, a := state.(string), input.(act)
		me := fmt.Sprintf("%06d,", a.owner)
		if a.what == "acquire" {
			return len(s) < permits*len(me), insert(s, me)
		}
		return strings.Contains(s, me), strings.Replace(s, me, "", 1)
	},
	DescribeOperation: describeAct,
}

func describeAct(input, _ any) string {
	a := input.(act)
	return fmt.Sprintf("%s %v by %d, token %v", a.what, a.mode, a.owner, a.token)
}

// change is a read of a register and the transaction built on it.
type change struct{ read, wrote string }

// guarded is a register that does not change between a worker's read and the write that
// is built on it.
var guarded = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		c := input.(change)
		return state.(string) == c.read, c.wrote
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// judge checks the history of every name. It returns the faults and the number of
// histories.
func (m *model) judge() (wrong []string, histories int) {
	check := func(what, name string, model porcupine.Model, ops []porcupine.Operation) {
		if len(ops) == 0 {
			return
		}
		histories++
		if porcupine.CheckOperations(model, ops) {
			return
		}
		text := fmt.Sprintf("history: %s does not behave like a %s:", name, what)
		for _, op := range ops {
			text += fmt.Sprintf("\n\t%d to %d: %s", op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
		}
		wrong = append(wrong, text)
	}
	for _, name := range slices.Sorted(maps.Keys(m.history.names)) {
		ops, modes := m.history.names[name], m.history.modes[name]
		switch {
		case m.w.p.operator: // its deletes end exclusion; only registers that Txn guards stay correct
		case modes[zklock.Permit]:
			check("semaphore", name, semaphore, ops)
		case modes[zklock.Shared]:
			check("fenced reader-writer lock", name, fencedRW, ops)
		default:
			check("mutex", name, ownerMutex, ops)
			check("fenced mutex", name, fencedMutex, ops)
		}
	}
	changes := map[string][]porcupine.Operation{}
	for _, c := range m.writes {
		if !c.applied {
			continue
		}
		if c.done == 0 {
			c.done = math.MaxInt64
		}
		changes[c.name] = append(changes[c.name], porcupine.Operation{ClientId: c.grip.worker.id, Input: change{c.read, c.value}, Call: c.call, Return: c.done})
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		check("guarded register", name, guarded, changes[name])
	}
	return wrong, histories
}

// The models accept correct histories and reject wrong ones.
func TestJudge(t *testing.T) {
	token := func(n int64) zklock.Token { return zklock.Token{Zxid: n} }
	op := func(call, ret int64, a act) porcupine.Operation {
		return porcupine.Operation{Input: a, Call: call, Return: ret}
	}
	x, s := zklock.Exclusive, zklock.Shared
	for _, c := range []struct {
		what  string
		model porcupine.Model
		ok    bool
		ops   []porcupine.Operation
	}{
		{"one after the other", ownerMutex, true, []porcupine.Operation{op(1, 4, act{"acquire", x, 1, token(1)}), op(5, 8, act{"release", x, 1, token(1)}), op(2, 7, act{"acquire", x, 2, token(2)})}},
		{"two at a time", ownerMutex, false, []porcupine.Operation{op(1, 4, act{"acquire", x, 1, token(1)}), op(6, 8, act{"release", x, 1, token(1)}), op(2, 5, act{"acquire", x, 2, token(2)})}},
		{"falling tokens", fencedMutex, false, []porcupine.Operation{op(1, 2, act{"acquire", x, 1, token(2)}), op(3, 4, act{"release", x, 1, token(2)}), op(5, 6, act{"acquire", x, 2, token(1)})}},
		{"readers together", fencedRW, true, []porcupine.Operation{op(1, 2, act{"acquire", s, 1, token(1)}), op(3, 4, act{"acquire", s, 2, token(1)}), op(5, 6, act{"release", s, 1, token(1)})}},
		{"writer while a reader holds", fencedRW, false, []porcupine.Operation{op(1, 2, act{"acquire", s, 1, token(1)}), op(3, 4, act{"acquire", x, 2, token(2)}), op(5, 6, act{"release", s, 1, token(1)})}},
		{"reader while a downgraded writer holds", fencedRW, true, []porcupine.Operation{op(1, 2, act{"acquire", x, 1, token(1)}), op(3, 6, act{"downgrade", x, 1, token(1)}), op(4, 5, act{"acquire", s, 2, token(2)})}},
		{"third holder of two permits", semaphore, false, []porcupine.Operation{op(1, 2, act{"acquire", zklock.Permit, 1, token(1)}), op(3, 4, act{"acquire", zklock.Permit, 2, token(2)}), op(5, 6, act{"acquire", zklock.Permit, 3, token(3)})}},
		{"lost update", guarded, false, []porcupine.Operation{{Input: change{"", "a"}, Call: 1, Return: 4}, {Input: change{"", "b"}, Call: 2, Return: 3}}},
	} {
		if got := porcupine.CheckOperations(c.model, c.ops); got != c.ok {
			t.Errorf("%s: judged %v, want %v", c.what, got, c.ok)
		}
	}
}
