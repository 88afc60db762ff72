package place

import (
	"context"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// ownWatches watches the nodes of granted places, so that a holder learns when another
// client, an operator's for example, deletes its node. The lease alone would not show that.
//
// A place that was granted after a wait already has watches on its nodes, so guards get them at
// once. A place that was granted at once gets watches a sixth of the session timeout later,
// whichever goroutine holds it by then: a watch on every lock that is held briefly would halve
// the throughput. A holder that wants to learn of a revocation gets them at once: see Attend.
// At the same time after each grant, lookAfter looks after what others read of the place.
//
// Invariants:
//   - A granted place is among the due ones until it is due, or until its end was noticed.
//   - A guard in withRoom has room and has not ended: the guard decides under the desk's mu
//     whether it has room and whether it ends.
type ownWatches struct {
	*Desk
	added chan struct{} // cap 1: wakes run for a new place, if its timer is not set for that

	// The desk's mu guards the following.
	due      []*Place // in the order of their grants; some of them may be ending
	sweepAt  int      // the length of due at which those that are ending are removed
	armed    bool     // run's timer is set, and fires no later than the first of due is due
	withRoom []*guard // guards that can take more nodes
}

const minSweep = 64

// Serve prepares a pool so that its sessions can have places. inUse reports whether this client
// uses the name with a path.
func Serve(sh *Shared, pool *session.Pool, inUse func(path string) bool) {
	pool.Prepare = func(ctx context.Context, ds driver.Session) error { return ensureRoot(ctx, ds, sh.cfg) }
	pool.Attend = func(s *session.Session) any {
		own := &ownWatches{Desk: newDesk(s, sh), added: make(chan struct{}, 1)}
		s.Spawn(own.run)
		return own
	}
	r := &reaper{&sh.parents, pool, inUse}
	sh.parents.start = func() { pool.Spawn(r.run) }
}

// DeskOf returns a session's desk.
func DeskOf(s *session.Session) *Desk { return s.User.(*ownWatches).Desk }

// delay is how long after its grant a place is due.
func (own *ownWatches) delay() time.Duration { return own.Timeout / 6 }

// addLocked takes over a place that has just been granted for the first time.
func (own *ownWatches) addLocked(p *Place) {
	if len(own.due) >= own.sweepAt { // their number has doubled, so that this costs little on average
		own.due = slices.DeleteFunc(own.due, func(p *Place) bool { return p.life.ending() })
		own.sweepAt = max(minSweep, 2*len(own.due))
	}
	if own.due = append(own.due, p); !own.armed {
		session.Poke(own.added)
	}
}

// next takes out a place that is due. If there is none, it returns nil and the time until
// the next one is due; a negative time if there are no places.
func (own *ownWatches) next() (*Place, time.Duration) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for len(own.due) > 0 {
		p := own.due[0]
		wait, ending := time.Until(p.Granted.Add(own.delay())), p.life.ending()
		if own.armed = wait > 0 && !ending; own.armed {
			return nil, wait
		}
		if own.due[0], own.due = nil, own.due[1:]; !ending {
			return p, 0
		}
	}
	own.due, own.armed = nil, false
	return nil, -1
}

// run gives the nodes of due places to guards, and looks after the places, until the
// session ends.
func (own *ownWatches) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, wait := own.next()
		if p != nil {
			p.entrust()
			p.lookAfter()
			continue
		}
		if wait < 0 {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-own.added:
		case <-own.Ctx.Done():
			return
		}
	}
}

// entrust gives the nodes of a granted place to guards, once.
func (p *Place) entrust() {
	p.Desk.mu.Lock()
	entrusted := p.entrusted
	p.entrusted = true
	p.Desk.mu.Unlock()
	if entrusted {
		return
	}
	for i := range p.nodes {
		n := guarded{place: p, index: i}
		if p.nodeWatches != nil {
			n.shared, n.event, n.gen = p.nodeWatches[i], p.nodeWatches[i].Event, p.nodeWatches[i].Gen
			p.noteRevocation(n.shared.Node.Data)
		}
		p.watches.give(n)
	}
}

// lookAfter looks after what others read of a place that was handed over, or may be kept. The
// first has its holder described. The queue of the second gets the watch that Keep would arm
// later, so that its holder is described when another contender comes.
func (p *Place) lookAfter() {
	p.Desk.mu.Lock()
	h, held := p.hold.(interface{ Keeper() Keeper }) // a Holder
	keepable := p.keepable && !p.others
	act := held && p.shown != p.turn && !(keepable && p.listed)
	p.listed = p.listed || act && keepable
	p.Desk.mu.Unlock()
	switch {
	case act && keepable:
		p.watches.give(guarded{place: p, keeper: h.Keeper()})
	case act:
		p.Describe(nil)
	}
}

// give gives a node to a guard that has room, or to a new one.
func (own *ownWatches) give(n guarded) {
	own.mu.Lock()
	fresh := len(own.withRoom) == 0
	if fresh {
		own.withRoom = append(own.withRoom, &guard{watches: own, wake: make(chan struct{}, 1)})
	}
	last := len(own.withRoom) - 1
	g := own.withRoom[last]
	g.entrusted = append(g.entrusted, n)
	if g.count++; g.count == maxGuarded {
		own.withRoom = own.withRoom[:last]
	}
	own.mu.Unlock()
	if fresh {
		own.Spawn(g.run)
	} else {
		session.Poke(g.wake)
	}
}
