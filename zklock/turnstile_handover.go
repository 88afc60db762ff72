package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// pass gives the place of a hold that is over to the first in the queue: as it is, which is a
// hand-over (handed is true), or to continue with or replace as the leader. If no goroutine wants
// the name, the client may keep the place; handed is true then, too. If taken is false, the caller
// gives the place up.
func (t *turnstile) pass(h *hold) (taken, handed bool) {
	t.mu.Lock()
	t.endLocked(h)
	if t.queue.Len() == 0 || t.holds > 0 || t.leader != nil || t.grants != nil {
		t.serveLocked(nil)
		kept := t.keepLocked(h)
		t.mu.Unlock()
		if kept {
			t.turnstiles.settle()
		}
		return kept, kept
	}
	next := t.queue.Front().Value.(*ticket)
	t.unqueueLocked(next)
	if _, granted := t.grantLocked(h.place, next.r); !granted {
		t.leader = next
		t.mu.Unlock()
		next.answer(nil, h.place)
		return true, false
	}
	t.mu.Unlock()
	lock := next.r.lock
	// The hook is called before the next holder's goroutine continues, so that the
	// hand-over is reported before the end of that goroutine's wait.
	t.turnstiles.reportHandover(next.r.Ctx, lock, h.Origin().Trace)
	next.answer(lock, nil)
	return true, true
}

// grantLocked begins a hold of a place that was held before, without asking the ensemble, if that
// is fair to other processes. If it is, and Grant refuses, as when the lease is too short or the
// session is over, the place is reserved: passable is true then, and the caller makes the request
// the leader with this place. If the session is over, take replaces the place.
//
// There is no leader and no hold. grantLocked unlocks mu while the place is granted, since that takes
// steps of the session, the place and the hold; grants keeps everything else from being served.
func (t *turnstile) grantLocked(p *place.Place, r *request) (passable, granted bool) {
	t.grants = r
	t.mu.Unlock()
	if passable = p.Handover().MayPass(r.Mode, t.turnstiles.cfg.handoverLimit, t.turnstiles.cfg.handoverTime); passable {
		if granted = p.Grant(r); !granted {
			p.Reserve()
		} else if r.Mode.Joins() {
			t.shareWhenDue(p)
		}
	}
	t.mu.Lock()
	t.grants = nil
	t.granted.Broadcast()
	if granted {
		t.beginLocked(r.lock.hold)
		t.serveLocked(nil)
	}
	return passable, granted
}

// reportHandover counts a hand-over and calls the hook. from is the traceparent of the
// acquisition that held the place before.
func (ts *turnstiles) reportHandover(ctx context.Context, lock *Lock, from string) {
	ts.counters.handovers.Add(1)
	if hook := ts.hooks.Handover; hook != nil {
		h := lock.hold
		hook(ctx, HandoverEvent{Name: h.name, Mode: lock.Mode(), Turn: lock.token.Turn, From: from, To: h.Origin().Trace})
	}
}

// shareWhenDue turns a writer's place that a reader has got into a reader's place. If other
// contenders are in ZooKeeper's queue, it does so at once. If the client watches for other
// contenders, Recalled does so when one arrives. Otherwise it happens when handover_time has
// passed: the place is not handed over after that. Until then the place can go back to writers of
// this client without a request. A reader of another process that queues by then waits no longer
// than it would for those writers.
func (t *turnstile) shareWhenDue(p *place.Place) {
	switch s := p.Handover(); {
	case s.Others:
		p.BecomeShared(nil)
	case !s.IsOpen():
		p.ShareAt(p.Granted.Add(t.turnstiles.cfg.handoverTime), t.shareForGood)
	}
}

// shareForGood makes a place a reader's at the time that shareWhenDue has set, if
// readers hold it then. They are the last holders of the place.
func (t *turnstile) shareForGood(p *place.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.Handover().IsOpen() {
		t.shareForGoodLocked(p)
	}
}

func (t *turnstile) shareForGoodLocked(p *place.Place) (became bool) {
	h, _ := p.Holder().(*hold)
	if h == nil || !h.shared() || h.isOver() {
		return false
	}
	became = p.BecomeShared(nil)
	t.serveLocked(nil) // a writer in the queue cannot get this node now, and needs another place
	return became
}
