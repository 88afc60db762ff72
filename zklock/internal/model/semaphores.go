package model

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Semaphores is one semaphore whose contenders ask for different numbers of permits. Each step is a transaction or a list, with what
// the client concludes from it. Contenders come, give up, and are replaced at any time.
type Semaphores struct {
	Contenders int8   // in the queue at the same time, at most
	Numbers    []int8 // what a contender may ask for
	Old        bool   // there are clients of earlier versions, too: see lookOfOld
	Window     int8   // how many of the first in line watch those ahead, at most; each looks with any window up to it
	Without    PermitGuard
}

// PermitGuard is a part of what clients do, which a test takes out.
type PermitGuard uint8

// The guards.
const (
	CountIsShown     PermitGuard = iota + 1 // the node of one that the count may grant does not say that it is granted by a look
	CountOfAtMost                           // the count grants if there are no more contenders than permits
	CountAfterTurn                          // and only if the one that is replaced had its turn
	ComesAgain                              // one that the count has not granted comes again behind one that asks for fewer
	ComesAgainOnce                          // and not if it has come again: it is granted by a look then
	MarksBehindFewer                        // one that was granted, and has seen one ahead that asks for fewer, is marked
	MarkedIsWatched                         // one that is marked while another counts departures is watched again
)

// permit is a contender.
type permit struct {
	number int8
	old    bool
	looks  bool // its node says that it is granted by a look
	turn   bool // it has had its turn: it holds, as far as others can know
	awake  bool // its client is about to look
	lower  bool // its last look has shown one ahead that asks for fewer
	marks  bool // its node has to be marked when it is granted
	marked bool
	watch  uint8 // the contenders that its client watches, by index, while it sleeps
	spare  int8  // so many of them may leave before it wakes
	grant  bool  // it wakes when one of them is marked
}

// permitQueue is the queue, oldest first.
type permitQueue struct {
	n int8
	q [maxPermits]permit
}

const maxPermits = 6

// The steps.
const (
	permitComes uint8 = iota
	oldPermitComes
	permitLeaves
	permitLooks
	permitIsMarked
	replacedToLook
	replacedToCount
)

// Initial implements System.
func (x Semaphores) Initial() []permitQueue { return []permitQueue{{}} }

// Describe implements System.
func (x Semaphores) Describe(_ permitQueue, step Step, to permitQueue) string {
	what := []string{"one comes, for %d", "an old one comes, for %d", "%d leaves", "%d looks", "%d is marked", "%d is replaced by one that looks", "%d is replaced by one that counts"}
	return fmt.Sprintf(what[step.What]+": %+v", step.Arg, to.q[:to.n])
}

// Next implements System.
func (x Semaphores) Next(s permitQueue, emit func(Step, permitQueue)) {
	for _, number := range x.Numbers {
		if s.n == x.Contenders {
			break
		}
		to := s
		to.enter(permit{number: number, looks: true}, false)
		emit(Step{permitComes, number}, to)
		if x.Old {
			to = s
			to.enter(permit{number: number, old: true}, false)
			emit(Step{oldPermitComes, number}, to)
		}
	}
	for i, m := range s.q[:s.n] {
		to, arg := s, int8(i)
		to.leave(i)
		emit(Step{permitLeaves, arg}, to)
		for window := int8(1); m.awake && window <= max(1, x.Window); window++ {
			to = s
			x.look(&to, i, int(window))
			emit(Step{permitLooks, arg}, to)
		}
		if m.turn && m.marks && !m.marked {
			to = s
			to.q[i].marked = true
			to.marked(i, x.Without != MarkedIsWatched)
			emit(Step{permitIsMarked, arg}, to)
		}
		if !m.turn && x.Without != CountAfterTurn {
			continue
		}
		for _, number := range x.Numbers { // a caller that wants another number may be next
			if !m.old {
				to = s
				to.leave(i)
				to.enter(permit{number: number, looks: true}, false)
				emit(Step{replacedToLook, arg}, to)
			}
			if m.old || !m.lower {
				to = s
				to.leave(i)
				to.enter(permit{number: number, old: m.old, looks: !m.old && x.Without == CountIsShown}, to.n < number || x.Without == CountOfAtMost)
				emit(Step{replacedToCount, arg}, to)
			}
		}
	}
}

// nodes returns what a list shows.
func (s *permitQueue) nodes() []queue.Node {
	q := make([]queue.Node, s.n)
	for i, m := range s.q[:s.n] {
		q[i] = queue.Node{Seq: int64(i), Kind: queue.Kind{Mode: queue.Permit, Permits: int(m.number)}, GUID: queue.GUID{Session: 1, Serial: 1}}
		if m.looks {
			q[i].GUID = q[i].GUID.Looking()
		}
	}
	return q
}

// wake wakes a client that sleeps.
func (m *permit) wake() { m.watch, m.spare, m.grant, m.awake = 0, 0, false, true }

// marked wakes those that await the grant of the contender at index i. The others that watch it read it, and watch it again: this is one
// step here, since one that leaves in between is found to have left.
func (s *permitQueue) marked(i int, again bool) {
	for j := range s.n {
		switch m := &s.q[j]; {
		case m.watch&(1<<i) == 0:
		case m.grant:
			m.wake()
		case !again:
			m.watch &^= 1 << i
		}
	}
}

// left wakes those for which too many have left when the contender at index i has.
func (s *permitQueue) left(i int) {
	for j := range s.n {
		switch m := &s.q[j]; {
		case m.watch&(1<<i) == 0:
		case m.spare == 0:
			m.wake()
		default:
			m.spare--
		}
	}
}

// leave takes the contender at index i out.
func (s *permitQueue) leave(i int) {
	s.left(i)
	copy(s.q[i:], s.q[i+1:s.n])
	s.n--
	s.q[s.n] = permit{}
	for j := range s.n {
		w := s.q[j].watch
		s.q[j].watch = w&(1<<i-1) | w>>1&^(1<<i-1)
	}
}

// enter adds a contender, which the count grants, or which is alone.
func (s *permitQueue) enter(m permit, granted bool) {
	m.turn = s.n == 0 || granted
	m.awake, m.marks = !m.turn, s.n >= m.number
	s.q[s.n] = m
	s.n++
}

// look is a list of the client of the contender at index i, and what it does with that.
func (x Semaphores) look(s *permitQueue, i, window int) {
	q, m := s.nodes(), &s.q[i]
	if m.old {
		s.lookOfOld(i)
		return
	}
	held, wait := queue.Decide(q, i, window)
	m.lower = queue.Lowered(q, i)
	m.marks = m.marks || m.lower && x.Without != MarksBehindFewer
	switch {
	case held:
		m.turn, m.awake = true, false
	case m.lower && (!m.looks || x.Without == ComesAgainOnce) && x.Without != ComesAgain:
		again := permit{number: m.number, looks: true}
		s.leave(i)
		s.enter(again, false)
	default:
		m.awake, m.spare, m.grant = false, int8(wait.Spare), wait.Grant
		for _, j := range wait.On {
			m.watch |= 1 << j
		}
	}
}

// lookOfOld is what a client of a version does that knows one number only: if it finds another one ahead, or would hold and finds
// one behind, it fails. Its nodes never say that they look.
func (s *permitQueue) lookOfOld(i int) {
	m, number := &s.q[i], int(s.q[i].number)
	for j, o := range s.q[:s.n] {
		if o.number != m.number && (j < i || i < number) {
			s.leave(i)
			return
		}
	}
	switch {
	case i < number:
		m.turn, m.awake = true, false
	case i == number:
		m.awake, m.watch = false, 1<<i-1
	case !s.q[i-1].marked:
		m.awake, m.watch, m.grant = false, 1<<(i-1), true
	}
}

// Check implements System: no more hold than any holder has asked for; when all clients have done what they have to do, none sleeps
// whose turn has come, and one holds.
func (x Semaphores) Check(s permitQueue) error {
	var turns uint
	restless := false
	for i, m := range s.q[:s.n] {
		if m.turn {
			turns |= 1 << i
		}
		restless = restless || m.awake || m.turn && m.marks && !m.marked
	}
	held := bits.OnesCount(turns)
	if i := slices.IndexFunc(s.q[:s.n], func(m permit) bool { return m.turn && held > int(m.number) }); i >= 0 {
		return fmt.Errorf("%d hold, and %d has asked for %d", held, i, s.q[i].number)
	}
	if restless || s.n == 0 {
		return nil
	}
	if held == 0 {
		return errors.New("all sleep, and none holds")
	}
	q := s.nodes()
	for i, m := range s.q[:s.n] {
		now := m.old && i < int(m.number)
		if !m.old {
			now, _ = queue.Decide(q, i, 1)
		}
		if now && !m.turn {
			return fmt.Errorf("%d sleeps, and its turn has come", i)
		}
	}
	return nil
}
