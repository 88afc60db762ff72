package judge

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Opinion is what porcupine says of a history.
type Opinion struct {
	// Exclusion reports whether the holds are those of a mutex whose tokens rise.
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
			{&o.Exclusion, mutexModel, mutexHistory(of)},
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

// mutexState is a mutex: the id of the hold that has it, or 0, and the newest token.
type mutexState struct {
	holder int
	token  history.Token
}

// mutexInput is an operation of a mutex: to lock it, or to unlock it.
type mutexInput struct {
	lock  bool
	id    int
	token history.Token
}

var mutexModel = porcupine.Model{
	Init: func() any { return mutexState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(mutexState), input.(mutexInput)
		switch {
		case !in.lock:
			return s.holder == in.id, mutexState{token: s.token}
		case s.holder != 0 || in.token != "" && in.token.Compare(s.token) <= 0:
			return false, s
		}
		return true, mutexState{holder: in.id, token: s.token.Max(in.token)}
	},
}

// mutexHistory has two operations for each hold. The mutex was locked between the request and its
// answer. It was unlocked at the end of the sure part, or later; the answer to the release is the latest
// time. A loss, or a kill, has no latest time: the servers notice it when they do. The token of a
// hold without a sure part is not judged, as the time of that hold is not known.
func mutexHistory(holds []Hold) []porcupine.Operation {
	var ops []porcupine.Operation
	for _, h := range holds {
		lock, unlock := mutexInput{lock: true, id: h.ID, token: h.Token}, mutexInput{id: h.ID}
		from := h.Sure
		if from == 0 {
			lock.token, from = "", h.Asked
		}
		ops = append(ops,
			porcupine.Operation{ClientId: h.Worker, Input: lock, Call: h.Asked, Return: h.Granted},
			porcupine.Operation{ClientId: h.Worker, Input: unlock, Call: from, Return: math.MaxInt64})
	}
	return ops
}

// registerState is a register: the id of the hold that wrote last, and its token.
type registerState struct {
	last  int
	token history.Token
}

// work is one read and the write after it, which a register does as one step.
type work struct {
	saw, id int
	token   history.Token
}

var registerModel = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, w := state.(registerState), input.(work)
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
			ops = append(ops, porcupine.Operation{ClientId: h.Worker, Input: work{saw: h.Saw, id: h.ID}, Call: h.Read, Return: h.Write})
		}
	}
	return ops
}

// fencedHistory has the works that the fenced register accepted.
func fencedHistory(holds []Hold) []porcupine.Operation {
	var ops []porcupine.Operation
	for _, h := range holds {
		if h.Write != 0 && !h.ReadRefused && !h.WriteRefused {
			ops = append(ops, porcupine.Operation{ClientId: h.Worker, Input: work{h.SawFenced, h.ID, h.Token}, Call: h.Read, Return: h.Write})
		}
	}
	return ops
}
