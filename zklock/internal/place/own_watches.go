package place

import (
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// ownWatches sees to it that a holder learns when somebody else, an operator
// for example, deletes its node: the lease alone would not notice. A place
// granted after a wait has its watches already. One granted at once gets them a
// sixth of the session timeout later, whoever holds it then: a watch on every
// short lock would halve the throughput.
//
// Invariants:
//   - A place that was granted is in the list of those due or in ready, or guards have its nodes, or
//     it is ending: nobody has to hear of its nodes any more.
//   - A guard that has room, or is to end, is found by entrust or not at all: it
//     decides both under mu.
type ownWatches struct {
	s     *Desk
	delay time.Duration
	added chan struct{} // cap 1: there is more to do, or sooner

	mu          sync.Mutex
	first, last *Place   // guarded by mu; due at delay after their grant, in that order
	ready       []*Place // guarded by mu; watched already
	armed       bool     // guarded by mu; run's timer is set, for no later than the first is due
	roomy       []*guard // guarded by mu; those that take more nodes
}

func (o *ownWatches) init(s *Desk) {
	o.s, o.delay, o.added = s, s.Timeout/6, make(chan struct{}, 1)
}

// add takes charge of a place that has just been granted for the first time.
// It waits for nothing: the session's mu is held.
func (o *ownWatches) add(p *Place) {
	o.mu.Lock()
	rouse := !o.armed
	if p.own != nil {
		o.ready, rouse = append(o.ready, p), true
	} else {
		if p.before = o.last; o.last != nil {
			o.last.after = p
		} else {
			o.first = p
		}
		o.last, p.due = p, true
	}
	o.mu.Unlock()
	if rouse {
		session.Poke(o.added)
	}
}

// remove forgets a place that is given up. What a guard has of it goes when the
// deletion of its node is reported.
func (o *ownWatches) remove(p *Place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.due {
		o.unlinkLocked(p)
	}
}

func (o *ownWatches) unlinkLocked(p *Place) {
	if p.before != nil {
		p.before.after = p.after
	} else {
		o.first = p.after
	}
	if p.after != nil {
		p.after.before = p.before
	} else {
		o.last = p.before
	}
	p.before, p.after, p.due = nil, nil, false
}

// next takes a place whose time has come, or says how long it is until there is
// one; negative: there is none.
func (o *ownWatches) next() (*Place, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.ready); n > 0 {
		p := o.ready[n-1]
		o.ready = o.ready[:n-1]
		return p, 0
	}
	p := o.first
	if o.armed = p != nil; !o.armed {
		return nil, -1
	}
	if wait := time.Until(p.Granted.Add(o.delay)); wait > 0 {
		return nil, wait
	}
	o.unlinkLocked(p)
	return p, 0
}

// run has guards see to the nodes of what is due, until the session ends.
func (o *ownWatches) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, wait := o.next()
		if p != nil {
			o.entrust(p)
			continue
		}
		if wait < 0 {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-o.added:
		case <-o.s.Ctx.Done():
			return
		}
	}
}

// entrust gives the nodes of a place to guards that have room, or to new ones.
func (o *ownWatches) entrust(p *Place) {
	for i := range p.nodes {
		n := guarded{place: p, index: i}
		if p.own != nil {
			n.shared, n.event, n.gen = p.own[i], p.own[i].Event, p.own[i].Gen
		}
		o.mu.Lock()
		var g *guard
		fresh := len(o.roomy) == 0
		if fresh {
			g = &guard{o: o, wake: make(chan struct{}, 1)}
			o.roomy = append(o.roomy, g)
		} else {
			g = o.roomy[len(o.roomy)-1]
		}
		g.entrusted = append(g.entrusted, n)
		if g.count++; g.count == maxGuarded {
			o.roomy = o.roomy[:len(o.roomy)-1]
		}
		o.mu.Unlock()
		if fresh {
			o.s.Spawn(g.run)
		} else {
			session.Poke(g.wake)
		}
	}
}
