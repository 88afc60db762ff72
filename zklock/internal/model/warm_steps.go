package model

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// The steps of WarmNames.
const (
	createsWithSet uint8 = iota
	createsWarm
	createsInVain
	readsReply
	concludes
	listsInstead
	releasesWarm
	deleteCommitted
	deleteFails
	armsWatch
	serverFollows
	newConnection
	otherCreates
	otherLeaves
	znodeRemoved
)

// Next implements System.
func (m WarmNames) Next(s warmState, emit func(Step, warmState)) {
	do := func(what uint8, arg int8, change func(to *warmState)) {
		to := s
		change(&to)
		emit(Step{What: what, Arg: arg}, to)
	}
	if room := m.Writes - s.zxid; room >= 2 { // a create may have to make the znode first
		m.environment(&s, do)
		m.creates(&s, do)
	}
	if s.at < s.zxid {
		do(serverFollows, 0, func(to *warmState) { to.at++ })
	}
	if s.reconnects < m.Reconnects {
		do(newConnection, 0, func(to *warmState) {
			to.reconnects++
			if to.watch != unarmed && m.Without != WatchOfThisConn {
				to.watch = lost
			} else if to.watch != unarmed {
				to.fires = 0 // its events are never sent
			}
		})
	}
	if s.deleting {
		if s.zxid < m.Writes {
			do(deleteCommitted, 0, func(to *warmState) {
				to.commit()
				to.deleting, to.lies = false, false
				to.goneBy = to.zxid
			})
		}
		do(deleteFails, 0, func(to *warmState) { to.deleting = false })
	}
	if s.proves && s.watch == unarmed {
		do(armsWatch, 0, func(to *warmState) {
			read := to.parents[to.at]
			if read != 0 && (place.ArmedFor(int64(read), int64(to.before.parent)) || m.Without == SameParentArmed) {
				to.watch = to.at
			}
		})
	}
	switch s.phase {
	case created:
		if s.at >= s.own.zxid {
			do(readsReply, 0, func(to *warmState) { to.phase = evaluated })
		}
	case evaluated:
		if !s.deleting && m.proof(&s) {
			do(concludes, 0, func(to *warmState) { to.hold(true) })
		} else if !s.deleting {
			do(listsInstead, 0, func(to *warmState) { to.hold(false) })
		}
	case held:
		do(releasesWarm, 0, func(to *warmState) { m.release(to) })
	}
}

// hold makes the client hold, because it counts as alone, or after it has waited for others.
// The model then leaves the others out: they are served first.
func (s *warmState) hold(counts bool) {
	s.phase, s.own.counts = held, counts
}

// creates emits the creates of the client. Without a proof it sets the znode, too: the reply
// then has the truth.
func (m WarmNames) creates(s *warmState, do func(uint8, int8, func(*warmState))) {
	if s.phase != without {
		return
	}
	do(createsWithSet, 0, func(to *warmState) {
		to.make()
		to.create()
		to.fires |= 1 << to.zxid
		to.own.parent = to.parent()
		to.hold(to.own.alone)
		to.at = to.zxid // the reply was read
		to.proves, to.watch = false, unarmed
	})
	if !s.proves || s.watch == unarmed && m.Without != ParentWatched {
		return
	}
	if s.parent() == 0 {
		do(createsInVain, 0, func(to *warmState) { to.proves, to.watch = false, unarmed })
		return
	}
	do(createsWarm, 0, func(to *warmState) {
		to.held0 = m.watchHolds(to)
		to.create()
		to.own.parent = to.before.parent
		to.phase = created
	})
}

// create commits a contender of the client.
func (s *warmState) create() {
	s.commit()
	s.own = wnode{suffix: s.next, zxid: s.zxid, alone: s.others == 0 && !s.lies}
	s.next++
}

// release ends the client's hold. What the contender proves is all that the client remembers.
func (m WarmNames) release(s *warmState) {
	proves := s.own.counts || m.Without == AloneBefore
	follows := s.proves && place.Follows(int64(s.before.suffix), int64(s.own.suffix)) && s.before.parent == s.own.parent
	if !follows {
		s.watch = unarmed
	}
	s.before, s.proves = s.own, proves
	s.own, s.phase, s.held0 = wnode{}, without, false
	s.lies, s.deleting, s.goneBy = true, true, 0
}

// environment emits what other clients do, and the removal of an empty znode.
func (m WarmNames) environment(s *warmState, do func(uint8, int8, func(*warmState))) {
	if s.others < m.Others {
		for set := range int8(2) {
			do(otherCreates, set, func(to *warmState) {
				to.make()
				to.commit()
				to.others++
				to.next++
				to.fires |= uint16(set) << to.zxid
			})
		}
	}
	if s.others > 0 {
		do(otherLeaves, 0, func(to *warmState) { to.commit(); to.others-- })
	}
	if s.parent() != 0 && s.others == 0 && !s.lies && s.phase == without {
		do(znodeRemoved, 0, func(to *warmState) {
			to.commit()
			to.parents[to.zxid] = 0
			to.fires |= 1 << to.zxid
		})
	}
}

// Describe implements System.
func (m WarmNames) Describe(_ warmState, step Step, to warmState) string {
	what := [...]string{
		createsWithSet:  "the client creates a contender and sets the znode",
		createsWarm:     "the client creates a contender without a set",
		createsInVain:   "the client's create fails, since there is no znode",
		readsReply:      "the client reads the reply",
		concludes:       "the client concludes that it is alone, and holds",
		listsInstead:    "the client lists the queue, and holds when it is its turn",
		releasesWarm:    "the client releases, and sends the delete",
		deleteCommitted: "the client's delete is committed",
		deleteFails:     "the client's delete fails",
		armsWatch:       "the client reads and watches the znode",
		serverFollows:   "the client's server applies a transaction",
		newConnection:   "the client reconnects",
		otherCreates:    "another client creates a contender",
		otherLeaves:     "another contender leaves",
		znodeRemoved:    "the empty znode is removed",
	}[step.What]
	if step.What == otherCreates && step.Arg == 1 {
		what += " and sets the znode"
	}
	return fmt.Sprintf("%-60s [znode of %d, next suffix %d, %d others]", what, to.parent(), to.next, to.others)
}
