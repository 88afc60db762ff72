package model

import (
	"math/bits"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// The steps of Locks.
const (
	acquire uint8 = iota
	replyComes
	createLate
	recovers
	serverApplies
	lists
	readsAhead
	hearsEvent
	hearsOwnGone
	readsOwn
	marks
	sweeps
	releases
	downgrades
	givesUpSession
	contextsEnd
	nodeGoes
	operatorDeletes
	reconnects
)

// Next implements System.
func (m Locks) Next(s lockState, found func(Step, lockState)) {
	emit := func(step Step, to lockState) {
		to.compact(m.Lag)
		found(step, to)
	}
	for i := range int8(m.Clients) {
		m.outside(s, i, emit)
		m.inside(s, i, emit)
	}
	stale := uint8(0)
	for i, n := range s.nodes {
		if n.mode != 0 && n.stale {
			stale |= 1 << i
		}
	}
	// Nodes of different sessions may go at the same time, but need not.
	for left := stale & s.view(0); left != 0; left &= left - 1 {
		i := int8(bits.TrailingZeros8(left))
		to := s
		to.remove(1<<i, m.Lag)
		emit(Step{What: nodeGoes, Client: never, Arg: i}, to)
	}
	if s.breaks < m.Breaks {
		m.operator(s, emit)
	}
}

// inside emits what a client and its server do without a cause from outside.
func (m Locks) inside(s lockState, i int8, emit func(Step, lockState)) {
	c := s.clients[i]
	do := func(what uint8, arg int8, change func(to *lockState, c *qclient)) {
		to := s
		change(&to, &to.clients[i])
		emit(Step{What: what, Client: i, Arg: arg}, to)
	}
	if c.late != 0 {
		to := s
		if n, ok := to.create(c.late, m.Lag); ok {
			c := &to.clients[i]
			c.late, c.twins = 0, c.twins|1<<n
			emit(Step{What: createLate, Client: i}, to)
		}
		do(createLate, 1, func(_ *lockState, c *qclient) { c.late = 0 }) // it is lost
	}
	if c.mark {
		do(marks, 0, func(to *lockState, c *qclient) {
			c.mark = false
			if own := c.own; to.view(0)&(1<<own) != 0 {
				to.commit(m.Lag)
				to.nodes[own].marked = 0
			}
		})
	}
	switch c.phase {
	case idle:
		if c.twins&s.view(0) != 0 && c.late == 0 && m.Without != StraysRemoved {
			do(sweeps, 0, func(to *lockState, c *qclient) { to.remove(c.twins, m.Lag); c.twins = 0 })
		}
	case asked:
		do(replyComes, 0, func(to *lockState, c *qclient) {
			c.at = to.nodes[c.own].born
			c.seen, c.phase = c.at, waiting
			if c.alone {
				m.grant(to, c)
			}
		})
	case recovering:
		m.recover(s, i, emit)
	case closing:
		do(contextsEnd, 0, func(_ *lockState, c *qclient) { c.reset(m.Lag) })
	case waiting, front:
		if c.at > 0 {
			do(serverApplies, 0, func(_ *lockState, c *qclient) { c.at-- })
		}
		if c.phase == front {
			do(readsOwn, 0, func(to *lockState, c *qclient) { m.readOwn(to, c) })
		} else {
			m.wait(s, i, do)
		}
	}
}

// recover looks for the node of a create whose reply was lost, after a Sync: the client goes
// on with it, or creates another with the same GUID.
func (m Locks) recover(s lockState, i int8, emit func(Step, lockState)) {
	to := s
	c := &to.clients[i]
	c.alone, c.here = false, true
	if found := c.twins & s.view(0); found != 0 {
		c.own = int8(bits.TrailingZeros8(found))
		c.twins &^= 1 << c.own
	} else {
		n, ok := to.create(c.mode, m.Lag)
		if !ok {
			return
		}
		c.own = int8(n)
	}
	c.phase, c.known, c.at, c.seen = waiting, false, 0, 0
	emit(Step{What: recovers, Client: i}, to)
}

// wait emits what a waiter does: it lists the queue, watches the nodes that queue.Decide
// names, and hears events.
func (m Locks) wait(s lockState, i int8, do func(uint8, int8, func(*lockState, *qclient))) {
	c := s.clients[i]
	view := s.view(c.at)
	if !c.known {
		do(lists, 0, func(to *lockState, c *qclient) { m.list(to, c, view) })
		return
	}
	_, watch := m.decide(&s, c.line, c.readers, c.own, c.mode)
	for left := watch & c.armed; left != 0; left &= left - 1 {
		j := int8(bits.TrailingZeros8(left))
		switch bit := uint8(1) << j; {
		case view&bit == 0 && c.deaf&bit == 0:
			do(hearsEvent, j, func(to *lockState, c *qclient) {
				c.armed, c.old = c.armed&^bit, c.old&^bit
				if m.gone(c, bit, true); m.Without == DecideByQueue {
					c.phase = front
					return
				}
				m.look(to, c)
			})
		case s.isMarked(int(j), c.at) && c.old&bit == 0:
			do(hearsEvent, j, func(_ *lockState, c *qclient) {
				c.armed &^= bit
				c.known = c.known && m.Permits == 0
			})
		}
	}
	if left := watch &^ c.armed; left != 0 {
		j := int8(bits.TrailingZeros8(left))
		do(readsAhead, j, func(to *lockState, c *qclient) { m.readAhead(to, c, j, view) })
		return
	}
	if view&(1<<c.own) == 0 && m.Without != OwnNodeWatched {
		do(hearsOwnGone, 0, func(_ *lockState, c *qclient) { c.reset(m.Lag) })
	}
}

// list is what a waiter does with a list of the queue.
func (m Locks) list(s *lockState, c *qclient, view uint8) {
	if m.Without != StraysRemoved {
		defer func(strays uint8) { s.remove(strays, m.Lag) }(c.twins & view)
	}
	c.seen = c.at
	if view&(1<<c.own) == 0 {
		c.reset(m.Lag)
		return
	}
	c.known, c.line, c.readers = true, view&(1<<c.own-1), 0
	c.here, c.byEvent = true, false
	c.armed, c.old, c.deaf = 0, 0, 0
	m.look(s, c)
}

// look has a waiter decide again. If it does not have to wait for a contender, it goes on to
// the grant.
func (m Locks) look(s *lockState, c *qclient) {
	if !c.known {
		return
	}
	if held, _ := m.decide(s, c.line, c.readers, c.own, c.mode); held {
		c.phase = front
	}
}

// The generations of a waiter's present connection, and of an earlier one.
const (
	present = 2
	earlier = 1
)

// combine calls place.Sight for a read on the present connection.
func (m Locks) combine(c *qclient) bool {
	sight := place.Sight{Gen: earlier, ByEvent: c.byEvent}
	if c.here || m.Without == EventsCombine {
		sight.Gen = present
	}
	ok := sight.Combine(present, true)
	if c.known = c.known && ok; ok {
		c.here, c.byEvent = sight.Gen == present, sight.ByEvent
	}
	return ok
}

// gone takes nodes that are gone out of the line that a waiter knows.
func (m Locks) gone(c *qclient, nodes uint8, byEvent bool) {
	c.line, c.readers = c.line&^nodes, c.readers&^nodes
	c.here, c.byEvent = true, byEvent
	if m.Permits > 0 {
		c.known = false
	}
}

// readAhead reads a node ahead, which arms a watch if the node is there.
func (m Locks) readAhead(s *lockState, c *qclient, j int8, view uint8) {
	bit := uint8(1) << j
	if view&bit == 0 && m.Without == ReadArms {
		c.armed, c.deaf = c.armed|bit, c.deaf|bit // the watch is armed as if the node were there, and never fires
		return
	}
	c.seen = c.at
	if !m.combine(c) {
		return
	}
	if view&bit == 0 {
		m.gone(c, bit, false)
		m.look(s, c)
		return
	}
	marked := s.isMarked(int(j), c.at)
	if marked && m.Permits > 0 && bits.OnesCount8(c.line) > m.Permits && m.Without != MarkFoundByRead {
		c.known = false
		return
	}
	c.armed |= bit
	if c.old &^= bit; marked {
		c.old |= bit
		if s.nodes[j].mode == queue.Exclusive {
			c.readers |= bit
			m.look(s, c)
		}
	}
}

// readOwn reads a waiter's own node, right before the grant.
func (m Locks) readOwn(s *lockState, c *qclient) {
	there := s.view(c.at)&(1<<c.own) != 0
	c.seen = c.at
	switch {
	case !there && m.Without != OwnNodeRead:
		c.reset(m.Lag)
	case !c.here && m.Without != OneConnection:
		c.phase, c.known = waiting, false
	default:
		m.grant(s, c)
	}
}

// grant makes a client hold.
func (m Locks) grant(s *lockState, c *qclient) {
	waited := c.phase == front
	s.behind = s.behind || c.own < s.top && c.mode != queue.Permit
	if c.mode == queue.Exclusive {
		s.top = c.own + 1
	}
	*c = qclient{phase: holding, mode: c.mode, own: c.own, twins: c.twins, late: c.late, at: m.Lag, seen: m.Lag}
	c.mark = waited && c.mode == queue.Permit && m.Without != PermitsMarked
}
