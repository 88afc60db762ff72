package model

import (
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// The steps of Places.
const (
	goroutineComes uint8 = iota
	placeTaken
	placeGranted
	readerJoins
	holdReleased
	takenUp
	becomesReaders
	nodeMarked
	watchArmed
	placeRecalled
	timeOver
	leaseShort
	leaseLong
	txnInDoubt
	txnAppliedLate
	placeRevoked
	sessionLost
	keptForLong
)

// Next implements System.
func (m Places) Next(s placeState, found func(Step, placeState)) {
	for i := range m.Processes {
		do := func(what uint8, outside bool, change func(to *placeState, p *process)) {
			to := s
			change(&to, &to.processes[i])
			m.number(&to)
			found(Step{What: what, Client: int8(i), Outside: outside}, to)
		}
		m.outside(&s, i, do)
		m.inside(&s, i, do)
	}
}

type change = func(what uint8, outside bool, change func(*placeState, *process))

// outside emits what goroutines and an operator do, and the faults.
func (m Places) outside(s *placeState, i int, do change) {
	p := &s.processes[i]
	if p.wants[maxWants-1] == 0 {
		for _, mode := range m.Modes {
			do(goroutineComes, true, func(_ *placeState, p *process) {
				for j := range p.wants {
					if p.wants[j] == 0 {
						p.wants[j] = mode
						return
					}
				}
			})
		}
	}
	if p.state == absent {
		return
	}
	if s.losses < m.Losses {
		do(sessionLost, true, func(to *placeState, p *process) {
			to.losses++
			p.leave()
		})
	}
	if p.granted && !p.late && !p.standing.IsOpen() {
		do(timeOver, true, func(_ *placeState, p *process) { p.late = true })
	}
	if !p.brief && s.shorts < m.Shorts {
		do(leaseShort, true, func(to *placeState, p *process) { to.shorts++; p.brief = true })
	}
	if p.granted && !p.standing.Revoked && s.revokes < m.Revokes {
		do(placeRevoked, true, func(to *placeState, p *process) {
			to.revokes++
			if p.standing.Revoked = true; p.state == saved {
				p.leave()
			}
		})
	}
	switch p.state {
	case used:
		do(holdReleased, true, func(to *placeState, p *process) { m.release(to, p) })
		if p.txn == 0 && s.txns < m.Txns {
			do(txnInDoubt, true, func(to *placeState, p *process) {
				to.txns++
				p.txn, p.standing.Doubtful = ofThisHold, true
			})
		}
	case saved:
		do(keptForLong, true, func(_ *placeState, p *process) { p.leave() })
	}
	if p.txn != 0 {
		do(txnAppliedLate, true, func(to *placeState, p *process) {
			if p.txn == ofEarlier && p.state == used {
				to.broken = txnApplied
			}
			p.txn = 0
		})
	}
}

// inside emits what a process does without a cause from outside.
func (m Places) inside(s *placeState, i int, do change) {
	p := &s.processes[i]
	next := p.wants[0]
	switch {
	case p.brief:
		do(leaseLong, false, func(_ *placeState, p *process) { p.brief = false })
	case p.state == absent && next != 0:
		do(placeTaken, false, func(to *placeState, p *process) { m.take(to, p) })
	case p.state == queued && next != 0 && m.turn(s, i), p.state == short && next != 0 && m.Without != ShortIsResumed:
		do(placeGranted, false, func(to *placeState, p *process) { m.grant(to, p) })
	case p.state == used && p.holder == queue.Shared && next == queue.Shared && p.readers < maxReaders && m.mayJoin(p):
		do(readerJoins, false, func(to *placeState, p *process) {
			if p.pop(); p.standing.Revoked {
				to.broken = heldAgain
			}
			p.readers++
		})
	}
	if p.state == queued && next == 0 || p.state == short && next == 0 {
		do(keptForLong, false, func(_ *placeState, p *process) { p.leave() })
	}
	if p.state == saved && next != 0 {
		do(takenUp, false, func(to *placeState, p *process) { m.takeUp(to, p) })
	}
	if p.state == used && p.holder == queue.Shared && p.standing.Mode == queue.Exclusive && (p.standing.Others || p.late) {
		do(becomesReaders, false, func(_ *placeState, p *process) { p.standing.Mode, p.mark = queue.Shared, true })
	}
	if p.mark {
		do(nodeMarked, false, func(_ *placeState, p *process) { p.marked, p.mark = true, false })
	}
	heldForLong := p.state == used && p.standing.Keepable && p.late
	if (p.standing.WasKept || heldForLong) && !p.armed && !p.standing.Others {
		do(watchArmed, false, func(to *placeState, p *process) {
			p.armed = true
			if m.Without != ArmingLists && to.others(p) {
				p.recall()
			}
		})
	}
	if p.event && m.Without != KeptIsRecalled {
		do(placeRecalled, false, func(_ *placeState, p *process) { p.recall() })
	}
}

// others reports whether another process has a place in the queue.
func (s *placeState) others(p *process) bool {
	for i := range s.processes {
		if o := &s.processes[i]; o.state != absent && o != p {
			return true
		}
	}
	return false
}

// mayJoin reports whether a reader may join a hold.
func (m Places) mayJoin(p *process) bool {
	known := m.known(p)
	known.Revoked = known.Revoked && m.Without != RevokedNotJoined
	return known.MayJoin(within)
}

// take creates a place at the tail of the queue, in the transaction that deletes the place
// before it. Its arrival fires the watches of kept places.
func (m Places) take(s *placeState, p *process) {
	p.leave()
	newest := s.lastBorn
	for i := range s.processes {
		if o := &s.processes[i]; o.state != absent {
			newest = max(newest, o.born)
			o.event = o.event || o.armed && !o.standing.Others
		}
	}
	p.state, p.born = queued, newest+1
	alone := !s.others(p)
	p.standing = place.Standing{Mode: p.wants[0], Turn: m.FirstTurn, Others: !alone, Keepable: m.Keep && alone}
}

// leave takes a process's place out of the queue.
func (p *process) leave() { *p = process{wants: p.wants, brief: p.brief} }

func (p *process) pop() {
	copy(p.wants[:], p.wants[1:])
	p.wants[maxWants-1] = 0
}

// grant begins the hold of the first goroutine that waits. It checks what place.Place.Grant does, and
// not what the rules before it have decided.
func (m Places) grant(s *placeState, p *process) {
	mode := p.wants[0]
	if p.granted && p.standing.Revoked && m.Without != RevokedEnds {
		m.take(s, p)
		return
	}
	if p.granted && p.standing.Revoked {
		s.broken = heldAgain
	}
	if p.granted {
		p.standing.Handovers++
		switch {
		case p.standing.IsOpen():
		case p.late && p.state != short: // a reserved place was handed over when it was reserved
			p.passes = m.Limit + 1
		case p.standing.Others:
			p.passes++
		}
		if p.txn == ofThisHold {
			p.txn = ofEarlier
		}
	}
	turn := p.standing.Turn
	if p.born < s.lastBorn || p.born == s.lastBorn && turn <= s.lastTurn {
		s.broken = tokenFell
	}
	if mode == queue.Exclusive {
		s.lastBorn, s.lastTurn = p.born, turn
	}
	p.pop()
	p.state, p.holder, p.readers, p.granted = used, mode, 0, true
	if mode == queue.Shared {
		p.readers = 1
	}
	p.standing.Turn++
}

// release ends a reader's part of a hold, or the hold. Then the place is handed over, kept,
// replaced or removed.
func (m Places) release(s *placeState, p *process) {
	if p.readers > 1 {
		p.readers--
		return
	}
	p.holder, p.readers = 0, 0
	if p.wants[0] == 0 {
		if m.known(p).MayBeKept() {
			p.state, p.standing.WasKept = saved, true
			return
		}
		p.leave()
		return
	}
	m.pass(s, p, m.known(p).MayPass(p.wants[0], int(m.Limit), within))
}

// takeUp gives a kept place to a goroutine.
func (m Places) takeUp(s *placeState, p *process) {
	m.pass(s, p, m.known(p).MayPass(p.wants[0], int(m.Limit), within))
}

// pass hands a place over, if it may be passed; else the process takes another.
func (m Places) pass(s *placeState, p *process, may bool) {
	switch {
	case !may:
		m.take(s, p)
	case p.brief:
		p.state = short
	default:
		m.grant(s, p)
	}
}

// recall is what place.Place.Recall and the turnstile do.
func (p *process) recall() {
	if p.state == saved {
		p.leave()
		return
	}
	p.event = false
	if p.standing.Others = true; p.standing.WasKept {
		p.standing.Handovers, p.late, p.passes = 0, false, 0
	}
}

// Describe implements System.
func (m Places) Describe(_ placeState, step Step, to placeState) string {
	what := [...]string{
		goroutineComes: "a goroutine of %s comes",
		placeTaken:     "%s takes a place in the queue",
		placeGranted:   "%s gets the lock",
		readerJoins:    "a reader of %s joins",
		holdReleased:   "%s releases",
		takenUp:        "%s takes the kept place up",
		becomesReaders: "%s makes its place a reader's",
		nodeMarked:     "%s marks its node",
		watchArmed:     "%s arms its watch on the queue",
		placeRecalled:  "the place of %s is recalled",
		timeOver:       "handover_time of %s is over",
		leaseShort:     "the lease of %s gets too short for a grant",
		leaseLong:      "the lease of %s is long enough again",
		txnInDoubt:     "a Txn of %s has an unknown outcome",
		txnAppliedLate: "the Txn of %s is applied, or lost",
		placeRevoked:   "an operator asks for the place of %s",
		sessionLost:    "%s loses its session",
		keptForLong:    "%s gives its place up",
	}[step.What]
	var parts []string
	for i, p := range to.processes[:m.Processes] {
		state := [...]string{"", "queues", "holds", "keeps", "reserves"}[p.state]
		if p.state == used {
			state += fmt.Sprintf(" (%v)", p.holder)
		}
		for _, mode := range p.wants {
			if mode != 0 {
				state += fmt.Sprintf(", %v wanted", mode)
			}
		}
		if state != "" {
			parts = append(parts, string(rune('A'+i))+" "+strings.TrimPrefix(state, ", "))
		}
	}
	return fmt.Sprintf("%-48s [%s]", fmt.Sprintf(what, string(rune('A'+step.Client))), strings.Join(parts, "; "))
}
