package local

import (
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// pass gives the place of a hold that is over to the first in the queue: as it is, which is a
// hand-over (handed is true), or to continue with or replace as the leader. If no goroutine wants
// the name, the client may keep the place; handed is true then, too. If taken is false, the caller
// gives the place up.
func (q *Queue) pass(h *Hold) (taken, handed bool) {
	q.mu.Lock()
	q.endLocked(h)
	if q.waiters.Len() == 0 || q.holds > 0 || q.leader != nil || q.grants != nil {
		q.serveLocked(nil)
		kept := q.keepLocked(h)
		q.mu.Unlock()
		if kept {
			q.queues.settle()
		}
		return kept, kept
	}
	leads := q.patience.tested.Load() && !h.place.Handover().MayPass(queue.Exclusive, q.queues.cfg.HandoverLimit, q.queues.cfg.HandoverTime)
	next := q.nextLocked(queue.Exclusive, leads)
	q.unqueueLocked(next)
	q.patience.turnLocked(next.since)
	if _, granted := q.grantLocked(h.place, next.r); !granted {
		q.leader, q.lead = next, waitingPlace{}
		q.mu.Unlock()
		next.answer(false, h.place)
		return true, false
	}
	q.mu.Unlock()
	// The hook is called before the next holder's goroutine continues, so that the
	// hand-over is reported before the end of that goroutine's wait.
	defer next.answer(true, nil) // also if the hook panics
	next.r.Caller.HandedOver(h.Origin().Trace)
	return true, true
}

// grantLocked begins a hold of a place that was held before, without asking the ensemble, if that
// is fair to other processes. If it is fair, and Grant refuses, as when the lease is too short or the
// session is over, grantLocked reserves the place: passable is true then, and the caller makes the
// request the leader with this place. If the session is over, take replaces the place.
//
// There is no leader and no hold. grantLocked unlocks mu while the place is granted, since that takes
// steps of the session, the place and the hold; grants keeps everything else from being served.
func (q *Queue) grantLocked(p *place.Place, r *Request) (passable, granted bool) {
	q.grants = r
	q.mu.Unlock()
	if passable = p.Handover().MayPass(r.Mode, q.queues.cfg.HandoverLimit, q.queues.cfg.HandoverTime); passable {
		if granted = p.Grant((*claimant)(r)); !granted {
			p.Reserve()
		} else if r.Mode.Joins() {
			q.shareWhenDue(p)
		}
	}
	q.mu.Lock()
	q.grants = nil
	q.granted.Broadcast()
	if granted {
		q.beginLocked(r.got)
		q.serveLocked(nil)
	}
	return passable, granted
}

// shareWhenDue turns a writer's place that a reader has got into a reader's place. If other
// contenders are in ZooKeeper's queue, it does so at once. If the client watches for other
// contenders, Recalled does so when one arrives. Otherwise it happens when handover_time has
// passed: the place is not handed over after that. Until then the place can go back to writers of
// this client without a request. A reader of another process that queues by then waits no longer
// than it would for those writers.
func (q *Queue) shareWhenDue(p *place.Place) {
	switch s := p.Handover(); {
	case s.Others:
		p.BecomeShared(nil)
	case !s.Open:
		p.ShareAt(p.Granted.Add(q.queues.cfg.HandoverTime), q.shareForGood)
	}
}

// shareForGood makes a place a reader's at the time that shareWhenDue has set, if
// readers hold it then. They are the last holders of the place.
func (q *Queue) shareForGood(p *place.Place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !p.Handover().Open {
		q.shareForGoodLocked(p)
	}
}

func (q *Queue) shareForGoodLocked(p *place.Place) (became bool) {
	h, _ := p.Holder().(*Hold)
	if h == nil || !h.shared() || h.IsOver() { // TestWritersNodeStaysAWriters
		return false
	}
	became = p.BecomeShared(nil)
	q.serveLocked(nil) // a writer in the queue cannot get this node now, and needs another place; TestWritersNodeGoesToReadersAndBack
	return became
}

// takeUpLocked grants the kept place to a request, which has found nothing else in
// the local queue. If that is not possible, the request becomes the leader, and its ticket is answered
// with that place to begin with, or with none for a try that needs another one. It unlocks mu for
// the grant.
func (q *Queue) takeUpLocked(r *Request) (granted bool, tk *ticket) {
	p := q.kept.place
	q.kept.endLocked(false)
	passable, granted := q.grantLocked(p, r)
	if granted {
		return true, nil
	}
	if !passable && r.Try {
		p.Remove() // the try waits until the place is gone, and then looks at the queue
		p = nil
	}
	tk = newTicket(r)
	q.leader, q.lead = tk, waitingPlace{}
	tk.answer(false, p)
	return false, tk
}

// Recalled implements place.RecallHandler. If no goroutine uses the place now, it leaves the queue.
// Otherwise the limits of hand-over count from now on, and others read of its holder.
func (q *Queue) Recalled(p *place.Place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.Recall(!q.queues.hasOthers(q))
	switch s := q.kept; {
	case q.keeps() && s.place == p:
		s.endLocked(true)
	case !q.shareForGoodLocked(p):
		p.Describe(nil)
	}
}
