package model

import (
	"math/bits"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// outside emits what callers do, and the faults.
func (m Locks) outside(s lockState, i int8, emit func(Step, lockState)) {
	c := s.clients[i]
	switch {
	case c.phase == idle && c.late == 0 && c.twins&s.view(0) == 0:
		if m.Acquires > 0 && s.acquires >= m.Acquires {
			break
		}
		for _, mode := range m.Modes {
			m.acquire(s, i, mode, emit)
		}
	case c.phase == holding:
		to := s
		to.remove(1<<c.own, m.Lag)
		to.clients[i].reset(m.Lag)
		emit(Step{What: releases, Client: i, Outside: true}, to)
		if c.mode == queue.Exclusive && s.downgrades < m.Downgrades {
			to := s
			to.downgrades++
			to.clients[i].mode, to.clients[i].mark = queue.Shared, m.Without != DowngradeMarked
			emit(Step{What: downgrades, Client: i, Outside: true}, to)
		}
		if m.Without == LeaseFirst && s.losses < m.Losses {
			to := s
			to.losses++
			to.remove(1<<c.own, m.Lag)
			emit(Step{What: nodeGoes, Client: never, Arg: c.own, Outside: true}, to)
		}
	}
	if c.phase != idle && c.phase != closing && s.losses < m.Losses {
		to := s
		to.losses++
		to.giveUp(i, m)
		emit(Step{What: givesUpSession, Client: i, Outside: true}, to)
	}
	if (c.phase == asked || c.phase == waiting || c.phase == front) && s.reconnects < m.Reconnects {
		for at := range c.seen + 1 {
			to := s
			to.reconnects++
			to.clients[i].reconnect(at)
			emit(Step{What: reconnects, Client: i, Arg: at, Outside: true}, to)
		}
	}
}

// acquire sends a create. It is committed at once, or later: then the client may give up
// waiting for the reply first.
func (m Locks) acquire(s lockState, i int8, mode queue.Mode, emit func(Step, lockState)) {
	to := s
	if n, ok := to.create(mode, m.Lag); ok {
		to.count(m)
		c := &to.clients[i]
		c.phase, c.mode, c.own = asked, mode, int8(n)
		c.alone = bits.OnesCount8(to.view(0)) == 1
		c.at = m.Lag // its server has not applied the create, or just has
		emit(Step{What: acquire, Client: i, Arg: int8(mode), Outside: true}, to)
	}
	if s.lates < m.Late && s.reconnects < m.Reconnects {
		to := s
		to.count(m)
		to.lates++
		to.reconnects++
		c := &to.clients[i]
		c.phase, c.mode, c.late = recovering, mode, mode
		emit(Step{What: acquire, Client: i, Arg: -int8(mode), Outside: true}, to)
	}
}

// count counts an acquisition, if their number is limited.
func (s *lockState) count(m Locks) {
	if m.Acquires > 0 {
		s.acquires++
	}
}

// giveUp makes a client give up its session. Its contexts end, and its nodes go some time
// later, when the session is closed or expires.
func (s *lockState) giveUp(i int8, m Locks) {
	c := &s.clients[i]
	nodes := c.twins
	if c.own != never {
		nodes |= 1 << c.own
	}
	for n := range s.nodes {
		if nodes&(1<<n) != 0 {
			s.nodes[n].stale = true
		}
	}
	before := c.phase
	c.twins, c.late = 0, 0
	c.reset(m.Lag)
	if m.Without == ContextsFirst && before == holding {
		c.phase, c.mode = closing, queue.Exclusive
	}
}

// reconnect moves a client to another server. Its watches are gone, and the reply to a create
// that is under way is lost.
func (c *qclient) reconnect(at int8) {
	c.at, c.armed, c.old, c.deaf, c.here = at, 0, 0, 0, false
	if c.phase == asked {
		c.phase, c.twins, c.own = recovering, c.twins|1<<c.own, never
	}
}

// operator deletes a node of a waiter. An operator that deletes a node whose turn it is ends
// exclusion, as the documentation says.
func (m Locks) operator(s lockState, emit func(Step, lockState)) {
	alive := s.view(0)
	for i := range int8(maxNodes) {
		if alive&(1<<i) == 0 {
			continue
		}
		if held, _ := m.decide(&s, alive, 0, i, s.nodes[i].mode); held {
			continue
		}
		to := s
		to.breaks++
		to.remove(1<<i, m.Lag)
		emit(Step{What: operatorDeletes, Client: never, Arg: i, Outside: true}, to)
	}
}
