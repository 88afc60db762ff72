package model

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Places is the model of hand-over and of kept places: processes with one place each in the
// queue of a name, and with goroutines that queue in the process behind it. A place goes from
// one goroutine to the next, may be kept when no goroutine wants it, and is recalled when
// another process queues. Servers do not lag here: the model Locks has that.
type Places struct {
	Processes int
	Modes     []queue.Mode // what a goroutine may ask for
	Keep      bool         // places that were alone when they were created may be kept
	Limit     int8         // handover_limit
	FirstTurn uint32       // the turn of a place's first holder

	Txns    int8 // how many Txns may have an unknown outcome
	Revokes int8 // how many places an operator may ask for
	Losses  int8 // how many sessions may be lost
	Shorts  int8 // how often a lease may be too short for a grant

	Without PlaceGuard // the guard that is taken out
}

// PlaceGuard is a part of the rules that can be taken out of the model.
type PlaceGuard uint8

// The guards of places.
const (
	NoPlaceGuard     PlaceGuard = iota // none is taken out
	ReadersPlace                       // a reader's place goes to readers only
	DoubtfulStays                      // a place is not handed over while a Txn of its holder may still be applied
	RevokedEnds                        // a revoked place has no further hold
	RevokedNotJoined                   // no further reader joins the hold of a revoked place
	LimitsCount                        // another process gets its turn
	TimeCounts                         // a place is handed over for a limited time only
	TurnsEndOnce                       // the turns of a place do not begin again
	KeptIsRecalled                     // another contender recalls a kept place
	ArmingLists                        // the watch of a kept place is armed by a list of the queue
	RecalledNotKept                    // a place is not kept while another contender waits for it
	ShortIsResumed                     // a place whose lease was too short is granted when it is long enough
)

// maxProcesses and maxWants limit the size of states.
const (
	maxProcesses = 3
	maxWants     = 2
	maxReaders   = 2 // of a hold; more of them change nothing
)

// What a process does with its place.
const (
	absent int8 = iota
	queued
	used  // a hold has it
	saved // it is kept
	short // it could be handed over, or taken up, once the lease is long enough
)

// process is a client with its place and its goroutines.
type process struct {
	wants [maxWants]queue.Mode // the goroutines that wait, the first first

	state    int8
	born     int8           // the creation of its node, as a number that is later for later ones
	standing place.Standing // what it knows of its place; Mode is what the node grants
	granted  bool           // the place had a holder
	late     bool           // the time of hand-over is over
	passes   int8           // how often the place was handed over while another contender was known; too often, if that was after that time
	marked   bool           // other processes count the node as a reader's
	mark     bool           // it is about to mark the node
	armed    bool           // the watch for other contenders is armed: of a kept place, or of one that was held for long
	event    bool           // and another contender has come since

	holder  queue.Mode // the hold's; 0: there is none
	readers int8       // how many readers share the hold
	txn     int8       // a Txn may still be applied: ofThisHold, ofEarlier; 0: none

	brief bool // the lease is too short for a grant
}

// The hold of a Txn that may still be applied.
const (
	ofThisHold int8 = iota + 1
	ofEarlier
)

// placeState is a state of Places.
type placeState struct {
	processes [maxProcesses]process
	lastBorn  int8   // of the place of the latest exclusive holder
	lastTurn  uint32 // of that holder
	broken    int8   // the invariant that a step has broken

	txns, revokes, losses, shorts int8
}

// The invariants that a step can break.
const (
	tokenFell int8 = iota + 1
	txnApplied
	heldAgain
)

// Initial implements System.
func (Places) Initial() []placeState { return []placeState{{}} }

// Canonical implements System: processes are interchangeable.
func (m Places) Canonical(s placeState) placeState {
	slices.SortFunc(s.processes[:m.Processes], compareProcesses)
	return s
}

// number makes the numbers of the creations, turns and hand-overs as small as possible: only their
// order matters. It leaves the turns alone in a model whose turns begin near the end of their range
// (FirstTurn).
func (m Places) number(s *placeState) {
	for i := range s.processes {
		p := &s.processes[i]
		p.standing.Handovers = min(p.standing.Handovers, int(m.Limit))
		if m.FirstTurn > 0 || p.state == absent {
			continue
		}
		if p.born == s.lastBorn {
			p.standing.Turn -= s.lastTurn
		}
		p.standing.Turn = min(p.standing.Turn, 1)
	}
	if m.FirstTurn == 0 {
		s.lastTurn = 0
	}
	var births [maxProcesses + 1]int8
	seen := births[:0]
	for _, p := range s.processes {
		if p.state != absent {
			seen = append(seen, p.born)
		}
	}
	if s.lastBorn > 0 {
		seen = append(seen, s.lastBorn)
	}
	slices.Sort(seen)
	seen = slices.Compact(seen)
	rank := func(n int8) int8 { return int8(slices.Index(seen, n) + 1) }
	for i := range s.processes {
		if p := &s.processes[i]; p.state != absent {
			p.born = rank(p.born)
		}
	}
	s.lastBorn = rank(s.lastBorn)
}

func compareProcesses(a, b process) int {
	flags := func(p *process) (set int) {
		for i, b := range [...]bool{p.granted, p.late, p.marked, p.mark, p.armed, p.event, p.brief,
			p.standing.Doubtful, p.standing.Revoked, p.standing.Keepable, p.standing.WasKept, p.standing.Others} {
			if b {
				set |= 1 << i
			}
		}
		return set
	}
	return cmp.Or(
		cmp.Compare(a.state, b.state), cmp.Compare(a.born, b.born), slices.Compare(a.wants[:], b.wants[:]),
		cmp.Compare(flags(&a), flags(&b)), cmp.Compare(a.passes, b.passes), cmp.Compare(a.holder, b.holder),
		cmp.Compare(a.readers, b.readers), cmp.Compare(a.txn, b.txn), cmp.Compare(a.standing.Mode, b.standing.Mode),
		cmp.Compare(a.standing.Turn, b.standing.Turn), cmp.Compare(a.standing.Handovers, b.standing.Handovers))
}

// within is handover_time. In this model the limits of a place have counted for exactly that long,
// or not at all.
const within = time.Second

// known returns the standing of a place as the library sees it. If the model does without a rule
// (m.Without), known changes the fact that the rule looks at, so that the rule never applies.
func (m Places) known(p *process) place.Standing {
	s := p.standing
	if p.late {
		s.Limited = within
	}
	switch m.Without {
	case ReadersPlace:
		s.Mode = queue.Exclusive
	case DoubtfulStays:
		s.Doubtful = false
	case RevokedEnds:
		s.Revoked = false
	case LimitsCount:
		s.Handovers = 0
	case TimeCounts:
		s.Limited = 0
	case TurnsEndOnce:
		s.Turn = 0
	case RecalledNotKept:
		s.Others = false
	}
	return s
}

// turn reports whether it is the turn of a process's place in the queue: queue.Decide decides.
func (m Places) turn(s *placeState, self int) bool {
	var order [maxProcesses]int
	ahead := order[:0]
	me := &s.processes[self]
	for i, p := range s.processes[:m.Processes] {
		if p.state != absent && p.born < me.born {
			ahead = append(ahead, i)
		}
	}
	slices.SortFunc(ahead, func(a, b int) int { return cmp.Compare(s.processes[a].born, s.processes[b].born) })
	var nodes [maxProcesses]queue.Node
	q := nodes[:0]
	for _, i := range ahead {
		q = append(q, queue.Node{Kind: s.processes[i].seen()})
	}
	q = append(q, queue.Node{Kind: queue.Kind{Mode: me.standing.Mode}})
	held, _ := queue.Decide(q, len(q)-1)
	return held
}

// seen returns the kind that other processes take the node for.
func (p *process) seen() queue.Kind {
	switch {
	case p.marked:
		return queue.Effective(queue.Kind{Mode: queue.Exclusive}, queue.Data{Mode: queue.Shared.String()})
	case p.mark:
		return queue.Kind{Mode: queue.Exclusive}
	}
	return queue.Kind{Mode: p.standing.Mode}
}

// Check implements System.
func (m Places) Check(s placeState) error {
	writers, readers := 0, 0
	for _, p := range s.processes[:m.Processes] {
		switch {
		case p.state == used && p.holder == queue.Exclusive:
			writers++
		case p.state == used:
			readers++
		}
		if p.passes > m.Limit {
			return errors.New("a process hands a place over more often than the limits allow")
		}
	}
	switch {
	case writers > 1:
		return errors.New("two processes hold the exclusive lock")
	case writers == 1 && readers > 0:
		return errors.New("a reader holds the lock next to a writer of another process")
	case s.broken == tokenFell:
		return errors.New("a holder's token is not above that of an earlier one")
	case s.broken == txnApplied:
		return errors.New("a Txn of an earlier holder was applied under a later one")
	case s.broken == heldAgain:
		return errors.New("a revoked place has another hold")
	}
	return nil
}

// Settled implements System: no goroutine waits that could hold, and no place is kept while
// another process waits.
func (m Places) Settled(s placeState) error {
	places, idle := 0, false
	for i, p := range s.processes[:m.Processes] {
		if p.state != absent {
			places++
		}
		idle = idle || p.state == saved
		switch {
		case p.wants[0] == 0 || p.brief:
		case p.state == absent:
			return errors.New("a goroutine waits, and its process has no place in the queue")
		case p.state == saved, p.state == short, p.state == queued && m.turn(&s, i):
			return errors.New("a goroutine waits although its process could have the lock")
		}
	}
	if idle && places > 1 {
		return errors.New("a place is kept while another process waits")
	}
	return nil
}
