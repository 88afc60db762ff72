package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A place is kept in ZooKeeper's queue between two uses, if the client has the setting keep:
// see keepLocked here, and place.Place.Keep. The name's turnstile has an active standby then. Its
// time ends in standby.endLocked, which is called:
//
//   - by takeUpLocked, for the next acquisition of the name;
//   - by Recalled, when ZooKeeper's queue has changed, or could not be listed: another contender
//     may be there;
//   - by endOld, when the time keep has passed. A session that is being replaced stays until then;
//   - by settle, for the place kept longest, while there are more than keep_max;
//   - by makeWay, for an acquisition of this client that takes a separate place;
//   - by Revoke, when the node's data ask for the lock;
//   - by Vacate, when the session is lost, or when another client has deleted the node:
//     place.guard finds that out, place.Place.Lose evicts the standby from its session, and
//     session.Session.Evict calls Vacate;
//   - by refuse, for Close and Shutdown.

// standby is the hold of a kept place: it has the place as the hold of a lock would. So the end of
// the session, or the deletion of the node, ends it too. A place has one standby, which is active
// each time when the place is kept.
//
// Invariants:
//   - A standby is active while it is its turnstile's and the turnstile's kept is set. It is in the
//     list standbys then. All of that changes under the mu of the turnstile.
//   - An active standby has its place, except between a loss and Vacate, which ends the standby:
//     then Grant refuses the place, and a new one replaces it.
//   - While the list is not empty, endOld is running or about to start, or the pool is closed.
type standby struct {
	turnstile *turnstile
	place     *place.Place
	trace     string // guarded by the turnstile's mu; the traceparent of the acquisition that held the place last

	since          time.Time // guarded by turnstiles.mu; since when it has been active
	previous, next *standby  // guarded by turnstiles.mu; neighbours in the list
}

// keep adds a standby to the list. It returns false if the client acquires nothing more.
func (ts *turnstiles) keep(s *standby) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closing.Err() != nil {
		return false
	}
	s.since = time.Now()
	s.previous, s.next = ts.standbys.previous, &ts.standbys
	s.previous.next, s.next.previous = s, s
	ts.keptCount.Add(1)
	s.turnstile.kept = true
	return true
}

// unkeep takes a standby out of the list. Its turnstile is removed if it is not used.
func (ts *turnstiles) unkeep(s *standby) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s.previous.next, s.next.previous = s.next, s.previous
	s.previous, s.next = nil, nil
	ts.keptCount.Add(-1)
	s.turnstile.kept = false
	ts.removeLocked(s.turnstile)
}

// settle starts endOld, and ends standbys while there are more than keep_max. It is called
// without a mutex. If the pool is closed, its sessions end, and the kept places with them.
func (ts *turnstiles) settle() {
	if ts.endingOld.CompareAndSwap(false, true) {
		ts.pool.Spawn(ts.endOld)
	}
	for int(ts.keptCount.Load()) > ts.cfg.keepMax {
		if s, _ := ts.oldest(); s != nil {
			s.end(true)
		}
	}
}

// endOld ends standbys when they have been active for the time keep. It returns when there are
// none.
func (ts *turnstiles) endOld() {
	for {
		switch s, stays := ts.oldest(); {
		case s == nil:
			ts.endingOld.Store(false)
			if ts.keptCount.Load() == 0 || !ts.endingOld.CompareAndSwap(false, true) {
				return // else a place is kept by now, and settle may have found endingOld set
			}
		case stays <= 0:
			s.end(true)
		case !session.Sleep(ts.pool.Ctx, stays, nil):
			return
		}
	}
}

// oldest returns the standby that has been active for the longest time, and how long it stays so;
// nil if there is none.
func (ts *turnstiles) oldest() (s *standby, stays time.Duration) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if s = ts.standbys.next; s == &ts.standbys {
		return nil, 0
	}
	return s, time.Until(s.since.Add(ts.cfg.keep))
}

// Revoke implements place.Revocable: no caller uses the place, so it leaves the queue.
func (s *standby) Revoke(string) { s.end(true) }

// Vacate implements session.Hold.
func (s *standby) Vacate() { s.end(false) }

// The loss of a standby is not reported, since no caller has a Lock of it. MarkLost, Finish,
// Report, Review, Name, Since and Candidacy implement session.Hold.

func (s *standby) MarkLost() bool          { return true }
func (s *standby) Finish(error, time.Time) {}
func (s *standby) Report()                 {}
func (s *standby) Review()                 {}
func (s *standby) Name() string            { return "" }
func (s *standby) Since() time.Time        { return time.Time{} }
func (s *standby) Candidacy() bool         { return false }

// end is endLocked for callers that do not hold mu. It does nothing if the standby is not active.
func (s *standby) end(remove bool) {
	s.turnstile.mu.Lock()
	defer s.turnstile.mu.Unlock()
	if t := s.turnstile; t.kept && t.standby == s {
		s.endLocked(remove)
	}
}

// endLocked ends the time of a standby. Its place is spent then. With remove the place leaves
// ZooKeeper's queue: the delete is sent before the turnstile can be removed, so a later
// acquisition sends its create behind it.
func (s *standby) endLocked(remove bool) {
	s.place.EndHold(s)
	if remove {
		s.place.Remove()
	}
	s.turnstile.turnstiles.unkeep(s)
}

// keepLocked keeps the place of a hold that is over, if no goroutine of this process wants
// the name. It returns false if the place has to leave ZooKeeper's queue. The caller calls
// settle when mu is not held any longer.
func (t *turnstile) keepLocked(h *hold) bool {
	s := t.standby
	if t.turnstiles.cfg.keep == 0 || t.queue.Len() > 0 || t.leader != nil || t.grants != nil || t.holds > 0 || t.separateWriters > 0 {
		return false
	}
	if s == nil || s.place != h.place {
		s = &standby{turnstile: t, place: h.place}
	}
	if !h.place.Keep(s, t) {
		return false
	}
	if !t.turnstiles.keep(s) {
		h.place.EndHold(s)
		return false
	}
	t.standby, s.trace = s, h.Origin().Trace
	return true
}

// takeUpLocked grants the place of the active standby to a request, which has found nothing else in
// the turnstile. If that is not possible, the request becomes the leader, and its ticket is answered
// with that place to begin with, or with none for a try that needs another one. It unlocks mu for
// the grant.
func (t *turnstile) takeUpLocked(r *request) (granted bool, tk *ticket) {
	p := t.standby.place
	t.standby.endLocked(false)
	passable, granted := t.grantLocked(p, r)
	if granted {
		return true, nil
	}
	if !passable && r.Try {
		p.Remove() // the try waits until the place is gone, and then looks at the queue
		p = nil
	}
	tk = newTicket(r)
	t.leader = tk
	tk.answer(nil, p)
	return false, tk
}

// Recalled implements place.RecallHandler. If no goroutine uses the place now, it leaves the queue.
// Otherwise the limits of hand-over count from now on, and others read of its holder.
func (t *turnstile) Recalled(p *place.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Recall(!t.turnstiles.hasOthers(t))
	switch s := t.standby; {
	case t.kept && s.place == p:
		s.endLocked(true)
	case !t.shareForGoodLocked(p):
		p.Describe(nil)
	}
}

// makeWay adds n to the writers that acquire with a separate place, for each name that a request
// under way wants to write. While there are any, no reader joins a hold on that name, and its place
// is not kept. If n is positive, the places that this client keeps for the request's names leave
// ZooKeeper's queue: the request would wait for them, or conflict with them. The deletes are sent
// before its create, which does not wait for them.
func (ts *turnstiles) makeWay(r *request, n int32) {
	for _, w := range r.Wants {
		ts.mu.Lock()
		t := ts.byPath[w.Path]
		ts.mu.Unlock()
		t.mu.Lock()
		if w.Kind.Mode.Excludes(queue.Shared) {
			t.separateWriters += n
		}
		if n > 0 && t.kept {
			t.standby.endLocked(true)
		}
		t.mu.Unlock()
	}
}
