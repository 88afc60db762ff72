package place

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// ownWatches watches the nodes of granted places, so that a holder learns when another
// client, an operator's for example, deletes its node. The lease alone would not show
// that.
//
// A place that was granted after a wait already has watches on its nodes. A place that
// was granted at once gets them a sixth of the session timeout later, whichever
// goroutine holds it by then: a watch on every lock that is held briefly would halve
// the throughput. A holder that wants to learn of a revocation gets them at once: see Attend.
// At the same time after each grant, lookAfter looks after what others read of the place.
//
// Invariants:
//   - A granted place is in the list of due places until it is due. Then, or before that from
//     ready, guards get its nodes. The exception is a place that is ending: its nodes need no
//     watches any more.
//   - A guard that entrust finds in withRoom has room and has not ended: the guard
//     decides under the desk's mu whether it has room and whether it ends.
type ownWatches struct {
	desk  *Desk
	delay time.Duration
	added chan struct{} // cap 1: wakes run for a new place, if its timer is not set for that

	// The desk's mu guards the following.
	first, last *Place   // list of due places: due delay after their grant, in that order
	ready       []*Place // places whose nodes are watched already, or are to be watched at once
	armed       bool     // run's timer is set, and fires no later than first is due
	withRoom    []*guard // guards that can take more nodes
}

// Serve prepares a pool so that its sessions can have places: each session makes sure
// that the root exists, and gets a Desk. inUse reports whether this client uses the
// name with a path.
func Serve(sh *Shared, pool *session.Pool, inUse func(path string) bool) {
	pool.Prepare = func(ctx context.Context, ds driver.Session) error { return ensureRoot(ctx, ds, sh.cfg) }
	pool.Attend = func(s *session.Session) any {
		o := &ownWatches{desk: newDesk(s, sh), delay: s.Timeout / 6, added: make(chan struct{}, 1)}
		s.Spawn(o.run)
		return o
	}
	sh.reaper = reaper{parents: &sh.parents, pool: pool, inUse: inUse}
	sh.parents.onFirst = sh.reaper.start
}

// ownWatching is what ownWatches needs of a place.
type ownWatching struct {
	nodeWatches    []*session.Watched // watches on the nodes, armed before the grant; nil if it was granted at once
	watches        *ownWatches        // of the session
	previous, next *Place             // guarded by Desk.mu; neighbours in the list of due places
}

// ownWatchesOf returns what watches the own nodes of a session.
func ownWatchesOf(s *session.Session) *ownWatches { return s.User.(*ownWatches) }

// DeskOf returns a session's desk.
func DeskOf(s *session.Session) *Desk { return ownWatchesOf(s).desk }

// addLocked takes over a place that has just been granted for the first time.
func (o *ownWatches) addLocked(p *Place) {
	rouse := !o.armed
	if p.nodeWatches != nil {
		o.ready, rouse = append(o.ready, p), true
	}
	if p.previous = o.last; o.last != nil {
		o.last.next = p
	} else {
		o.first = p
	}
	o.last, p.due = p, true
	if rouse {
		session.Poke(o.added)
	}
}

// hurryLocked makes a place ready that is due later.
func (o *ownWatches) hurryLocked(p *Place) {
	if p.due && !p.entrusted {
		o.ready = append(o.ready, p)
	}
	session.Poke(o.added)
}

// removeLocked takes a place that is due, or is given up, out of the list of due places. If a
// guard has its nodes, the guard removes them when their watches report the deletion.
func (o *ownWatches) removeLocked(p *Place) {
	if !p.due {
		return
	}
	if p.previous != nil {
		p.previous.next = p.next
	} else {
		o.first = p.next
	}
	if p.next != nil {
		p.next.previous = p.previous
	} else {
		o.last = p.previous
	}
	p.previous, p.next, p.due = nil, nil, false
}

// next takes out a place that is ready or due. If there is none, it returns nil and the
// time until the next one is due; a negative time if the list is empty.
func (o *ownWatches) next() (*Place, time.Duration) {
	o.desk.mu.Lock()
	defer o.desk.mu.Unlock()
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
	o.removeLocked(p)
	return p, 0
}

// run gives the nodes of ready and due places to guards, until the session ends.
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
		case <-o.desk.Ctx.Done():
			return
		}
	}
}

// entrust gives the nodes of a place to guards, once, and looks after a place that is due.
func (o *ownWatches) entrust(p *Place) {
	o.desk.mu.Lock()
	due, entrusted := !p.due, p.entrusted
	p.entrusted = true
	o.desk.mu.Unlock()
	if due {
		defer o.lookAfter(p)
	}
	if entrusted {
		return
	}
	for i := range p.nodes {
		n := guarded{place: p, index: i}
		if p.nodeWatches != nil {
			n.shared, n.event, n.gen = p.nodeWatches[i], p.nodeWatches[i].Event, p.nodeWatches[i].Gen
			p.noteRevocation(n.shared.Node.Data)
		}
		o.give(n)
	}
}

// lookAfter looks after what others read of a place that was handed over, or may be kept. The
// first has its holder described. The queue of the second gets the watch that Keep would arm
// later, so that its holder is described when another contender comes.
func (o *ownWatches) lookAfter(p *Place) {
	o.desk.mu.Lock()
	h, held := p.hold.(interface{ Keeper() Keeper }) // a Holder
	keepable := p.keepable && !p.others
	act := held && p.shown != p.turn && !(keepable && p.listed)
	p.listed = p.listed || act && keepable
	o.desk.mu.Unlock()
	switch {
	case act && keepable:
		o.give(guarded{place: p, keeper: h.Keeper()})
	case act:
		p.Describe(nil)
	}
}

// give gives a node to a guard that has room, or to a new one.
func (o *ownWatches) give(n guarded) {
	o.desk.mu.Lock()
	var g *guard
	fresh := len(o.withRoom) == 0
	if fresh {
		g = &guard{watches: o, wake: make(chan struct{}, 1)}
		o.withRoom = append(o.withRoom, g)
	} else {
		g = o.withRoom[len(o.withRoom)-1]
	}
	g.entrusted = append(g.entrusted, n)
	if g.count++; g.count == maxGuarded {
		o.withRoom = o.withRoom[:len(o.withRoom)-1]
	}
	o.desk.mu.Unlock()
	if fresh {
		o.desk.Spawn(g.run)
	} else {
		session.Poke(g.wake)
	}
}
