package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A place is kept in ZooKeeper's queue after its last use, if the client has the setting keep:
// see keepLocked here, and place.Place.Keep. The name's turnstile has an active standby then. What
// ends its time:
//
//   - the next acquisition of the name: takeUpLocked;
//   - another contender in ZooKeeper's queue: Recalled;
//   - the setting keep, or keep_max, when no other place was kept for as long: retireOld and
//     settle;
//   - an acquisition of this client that takes a separate place: makeWay;
//   - a revocation: Revoke; the loss of the session or of the node: Vacate; Close and Shutdown:
//     refuse.

// standby has a kept place, as a hold has the place of a lock, so that the end of the session
// or the deletion of the node ends it, too. It is used for one place only, each time when that
// place is kept.
//
// Invariants:
//   - A standby is active, and so has its place, while it is its turnstile's and the turnstile is
//     kept. It is in the list of turnstiles then. All of that changes under the mu of the turnstile.
//   - While the list is not empty, retireOld is running or about to start, or the pool is closed.
type standby struct {
	turnstile *turnstile
	place     *place.Place
	trace     string // guarded by the turnstile's mu; the traceparent of the acquisition that held the place last

	since          time.Time // guarded by turnstiles.mu; since when the place has been kept
	previous, next *standby  // guarded by turnstiles.mu; neighbours in the list
}

// keep adds a standby to the list. It returns false if no place may be kept any longer.
func (ts *turnstiles) keep(s *standby) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closing.Err() != nil {
		return false
	}
	s.since = time.Now()
	s.previous, s.next = ts.kept.previous, &ts.kept
	s.previous.next, s.next.previous = s, s
	ts.keeps.Add(1)
	s.turnstile.kept = true
	return true
}

// unkeep takes a standby out of the list. Its turnstile is removed if it is not used.
func (ts *turnstiles) unkeep(s *standby) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s.previous.next, s.next.previous = s.next, s.previous
	s.previous, s.next = nil, nil
	ts.keeps.Add(-1)
	s.turnstile.kept = false
	ts.removeLocked(s.turnstile)
}

// settle starts retireOld, and makes places leave the queue while there are too many. It is called
// without a mutex. If the pool is closed, its sessions end, and the kept places with them.
func (ts *turnstiles) settle() {
	if ts.retiring.CompareAndSwap(false, true) {
		ts.pool.Spawn(ts.retireOld)
	}
	for int(ts.keeps.Load()) > ts.cfg.keepMax {
		if s, _ := ts.oldest(); s != nil {
			s.retire(false)
		}
	}
}

// retireOld makes places leave the queue when they have been kept for long enough. It ends when
// none is kept.
func (ts *turnstiles) retireOld() {
	for {
		switch s, stays := ts.oldest(); {
		case s == nil:
			ts.retiring.Store(false)
			if ts.keeps.Load() == 0 || !ts.retiring.CompareAndSwap(false, true) {
				return // else a place is kept by now, and settle may have found retiring set
			}
		case stays <= 0:
			s.retire(false)
		case !session.Sleep(ts.pool.Ctx, stays, nil):
			return
		}
	}
}

// oldest returns the standby that has been kept for the longest time, and how long it stays; nil
// if there is none.
func (ts *turnstiles) oldest() (s *standby, stays time.Duration) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if s = ts.kept.next; s == &ts.kept {
		return nil, 0
	}
	return s, time.Until(s.since.Add(ts.cfg.keep))
}

// Revoke implements place.Revocable: no caller uses the place, so it leaves the queue.
func (s *standby) Revoke(string) { s.retire(false) }

// Vacate implements session.Tenant.
func (s *standby) Vacate() { s.retire(true) }

// The loss of a standby is not reported, since no caller has a Lock of it. MarkLost, Finish,
// Report, Review and About implement session.Tenant.

func (s *standby) MarkLost() bool { return true }

func (s *standby) Finish(error, time.Time) {}

func (s *standby) Report() {}

func (s *standby) Review() {}

func (s *standby) About() (name string, since time.Time) { return "", time.Time{} }

// retire ends the time of a standby, if that has not ended by now. lost means that the place is
// gone already; otherwise it leaves ZooKeeper's queue.
func (s *standby) retire(lost bool) {
	s.turnstile.mu.Lock()
	defer s.turnstile.mu.Unlock()
	if t := s.turnstile; t.kept && t.standby == s {
		s.endLocked(!lost)
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
	if t.turnstiles.cfg.keep == 0 || t.queue.Len() > 0 || t.leader != nil || t.holds > 0 || t.separateWriters > 0 {
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

// takeUpLocked grants the place of the active standby to a request. If that is not possible, start
// is that place, for the request to begin with as the leader; nil for a try that needs another one.
func (t *turnstile) takeUpLocked(r *request) (granted bool, start *place.Place) {
	p := t.standby.place
	t.standby.endLocked(false)
	passable, granted := t.grantLocked(p, r)
	if !passable && r.Try {
		p.Remove() // the try waits until the place is gone, and then looks at the queue
		p = nil
	}
	return granted, p
}

// Recalled implements place.Keeper. If no goroutine uses the place now, it leaves the queue.
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
		if w.Kind.Mode == queue.Exclusive {
			t.separateWriters += n
		}
		if n > 0 && t.kept {
			t.standby.endLocked(true)
		}
		t.mu.Unlock()
	}
}
