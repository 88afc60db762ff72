package judge

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/anishathalye/porcupine"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Opinion is what porcupine says of a history.
type Opinion struct {
	// Exclusion reports whether the holds are those of a lock for one, or for several that share it, whose tokens rise.
	Exclusion bool

	// Register reports whether the works are those of a register without lost updates.
	Register bool

	// Fenced reports whether the works that the fenced register accepted are those of a register
	// without lost updates, with tokens that rise.
	Fenced bool
}

// Agrees reports whether the verdict of Plain says the same.
func (o Opinion) Agrees(v Verdict) bool {
	return o.Exclusion == (v.Overlaps == 0 && v.Fell == 0) && o.Register == (v.Lost == 0) && o.Fenced == (v.FencedLost == 0)
}

// Porcupine judges holds with the linearizability checker. It reports false if the checker has no answer
// within the limit; 0: no limit.
func Porcupine(holds []Hold, limit time.Duration) (o Opinion, known bool) {
	o = Opinion{true, true, true}
	deadline := time.Now().Add(limit)
	for _, of := range byName(holds) {
		for _, question := range []struct {
			verdict *bool
			model   porcupine.Model
			history []porcupine.Operation
		}{
			{&o.Exclusion, lockModel, lockHistory(of)},
			{&o.Register, registerModel, registerHistory(of)},
			{&o.Fenced, registerModel, fencedHistory(of)},
		} {
			left := time.Duration(0)
			if limit > 0 {
				left = max(time.Until(deadline), 1)
			}
			switch porcupine.CheckOperationsTimeout(question.model, question.history, left) {
			case porcupine.Illegal:
				*question.verdict = false
			case porcupine.Unknown:
				return o, false
			}
		}
	}
	return o, true
}

// lockState is a lock: the id of the hold that has it alone, or 0; the number of holds that share it; how many permits those of a
// semaphore have asked for, in order; the newest token, and that of the holds that had it alone.
type lockState struct {
	holder, sharing int
	asked           string // a rune for each
	newest, alone   history.Token
}

// lockInput is an operation of a lock.
type lockInput struct {
	does    int // lock, unlock, or pass
	id      int
	shared  bool
	permits int
	token   history.Token // "": not judged
}

// asked returns what stands for the operation's hold in lockState; "" if that is not one of a permit.
func (in lockInput) asked() string {
	if in.permits == 0 {
		return ""
	}
	return string(rune(in.permits))
}

// least returns the least number of permits that the operation's hold and those that share the lock have asked for.
func (in lockInput) least(s lockState) int {
	if s.asked == "" {
		return in.permits
	}
	fewest, _ := utf8.DecodeRuneInString(s.asked)
	return min(in.permits, int(fewest))
}

// What an operation does: pass locks and unlocks at one moment.
const (
	lock = iota
	unlock
	pass
)

var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(lockState), input.(lockInput)
		together := in.shared || in.permits > 0
		switch {
		case in.does == unlock && together: // it has locked before, as its sure part ends after the grant
			s.sharing--
			s.asked = strings.Replace(s.asked, in.asked(), "", 1)
			return true, s
		case in.does == unlock:
			ok := s.holder == in.id
			s.holder = 0
			return ok, s
		case s.holder != 0, !together && s.sharing > 0, in.permits > 0 && s.sharing >= in.least(s):
			return false, s
		case in.does == pass:
			return true, s
		case in.token == "":
		case in.shared && in.token.Compare(s.alone) <= 0, !in.shared && in.token.Compare(s.newest) <= 0:
			return false, s
		}
		s.newest = s.newest.Max(in.token)
		if together {
			s.sharing++
			asked := []rune(s.asked + in.asked())
			slices.Sort(asked)
			s.asked = string(asked)
		} else {
			s.holder, s.alone = in.id, s.alone.Max(in.token)
		}
		return true, s
	},
}

// lockHistory has two operations for each hold with a sure part. The lock was locked between the request and its
// answer. It was unlocked at the end of the sure part, or later: there is no latest time, as the servers notice a loss, or a kill,
// when they do. A hold without a sure part has one operation, at a moment between request and answer that is not known. So its
// token is not judged; if it is that of a permit, it is left out.
func lockHistory(holds []Hold) []porcupine.Operation {
	var ops []porcupine.Operation
	for _, h := range holds {
		in := lockInput{id: h.ID, shared: h.Shared, permits: h.Permits, token: h.Token}
		if h.Permits > 0 {
			in.token = ""
		}
		if h.Sure == 0 {
			if in.does, in.token = pass, ""; h.Permits == 0 {
				ops = append(ops, porcupine.Operation{ClientId: h.Worker, Input: in, Call: h.Asked, Return: h.Granted})
			}
			continue
		}
		ops = append(ops, porcupine.Operation{ClientId: h.Worker, Input: in, Call: h.Asked, Return: h.Granted})
		in.does = unlock
		ops = append(ops, porcupine.Operation{ClientId: h.Worker, Input: in, Call: h.Sure, Return: math.MaxInt64})
	}
	return ops
}

// registerState is a register: the id of the hold that wrote last, and its token.
type registerState struct {
	last  int
	token history.Token
}

// work is one read and the write after it, which a register does as one step; or two reads.
type work struct {
	saw, id int
	token   history.Token
	shared  bool
	again   int
}

var registerModel = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, w := state.(registerState), input.(work)
		if w.shared {
			return w.saw == s.last && w.again == s.last, s
		}
		if w.saw != s.last || w.token != "" && w.token.Compare(s.token) <= 0 {
			return false, s
		}
		return true, registerState{last: w.id, token: s.token.Max(w.token)}
	},
}

// registerHistory has the works on the plain register, which knows no tokens.
func registerHistory(holds []Hold) []porcupine.Operation {
	var ops []porcupine.Operation
	for _, h := range holds {
		if h.Write != 0 {
			ops = append(ops, porcupine.Operation{ClientId: h.Worker, Input: work{saw: h.Saw, id: h.ID, shared: h.Shared, again: h.Again}, Call: h.Read, Return: h.Write})
		}
	}
	return ops
}

// fencedHistory has the works that the fenced register accepted.
func fencedHistory(holds []Hold) []porcupine.Operation {
	var ops []porcupine.Operation
	for _, h := range holds {
		if h.Write != 0 && !h.ReadRefused && !h.WriteRefused {
			ops = append(ops, porcupine.Operation{ClientId: h.Worker, Input: work{h.SawFenced, h.ID, h.Token, h.Shared, h.AgainFenced}, Call: h.Read, Return: h.Write})
		}
	}
	return ops
}
