package zklock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A place is kept in ZooKeeper's queue after its last use, if the client has the setting keep:
// see keepLocked here, and place.Place.Keep. The name's turnstile has a standby then. What ends it:
//
//   - the next acquisition of the name: takeUpLocked;
//   - another contender in ZooKeeper's queue: Recalled;
//   - the setting keep, or keep_max, when it is the one that was not used for the longest time:
//     run and settle;
//   - an acquisition of this client that takes a separate place: makeWay;
//   - a revocation: Revoke; the loss of the session or of the node: Vacate; Close and Shutdown:
//     close.

// kept is the list of the places that a client keeps.
//
// Invariants:
//   - A standby is in the list if and only if it is the standby of its turnstile. Both change
//     under that turnstile's mu.
//   - While the list is not empty, run is running or about to start, or the pool is closed.
//   - After close, no place is kept.
//   - No other mutex is locked while mu is held. Callers hold the mutex of a turnstile.
type kept struct {
	keep time.Duration // 0: none is kept
	max  int
	pool *session.Pool

	mu          sync.Mutex
	first, last *standby     // guarded by mu; list of those that have a kept place, the one kept longest first
	n           atomic.Int64 // the length of the list; changed under mu
	running     atomic.Bool  // set to false under mu
	closed      bool         // guarded by mu
}

// keeper is what a kept place was kept for: its name's turnstile.
type keeper interface {
	// retire ends the time of a standby, unless its place was taken up meanwhile. lost means
	// that the place is gone already; otherwise it leaves ZooKeeper's queue.
	retire(s *standby, lost bool)
}

// standby has a kept place, as a hold has the place of a lock, so that the end of the session
// or the deletion of the node ends it, too. It is used for one place only, each time when that
// place is kept.
type standby struct {
	keeper keeper
	place  *place.Place
	trace  string // the traceparent of the acquisition that held the place last

	since          time.Time // guarded by kept.mu; since when the place has been kept
	previous, next *standby  // guarded by kept.mu; neighbours in the list
}

// add adds a standby. It returns false if nothing is kept any more. Otherwise the caller has to
// call settle when it holds no mutex.
func (k *kept) add(s *standby) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	s.since = time.Now()
	if s.previous = k.last; k.last != nil {
		k.last.next = s
	} else {
		k.first = s
	}
	k.last = s
	k.n.Add(1)
	return true
}

// settle starts run, and makes places leave the queue while there are too many. If the pool is
// closed, its sessions end, and the kept places with them.
func (k *kept) settle() {
	if k.running.CompareAndSwap(false, true) {
		k.pool.Spawn(k.run)
	}
	for k.n.Load() > int64(k.max) {
		if s, _ := k.oldest(); s != nil {
			s.keeper.retire(s, false)
		}
	}
}

// remove takes a standby out.
func (k *kept) remove(s *standby) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.previous != nil {
		s.previous.next = s.next
	} else {
		k.first = s.next
	}
	if s.next != nil {
		s.next.previous = s.previous
	} else {
		k.last = s.previous
	}
	s.previous, s.next = nil, nil
	k.n.Add(-1)
}

// len returns how many places are kept. It locks no mutex.
func (k *kept) len() int { return int(k.n.Load()) }

// close makes all kept places leave the queue.
func (k *kept) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	for s, _ := k.oldest(); s != nil; s, _ = k.oldest() {
		s.keeper.retire(s, false)
	}
}

// run makes places leave the queue when they have been kept for long enough. It ends when
// none is kept.
func (k *kept) run() {
	for {
		switch s, wait := k.oldest(); {
		case s == nil:
			if k.ends() {
				return
			}
		case wait <= 0:
			s.keeper.retire(s, false)
		case !session.Sleep(k.pool.Ctx, wait, nil):
			return
		}
	}
}

// ends notes that run ends, unless there is a standby by now.
func (k *kept) ends() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running.Store(k.first != nil)
	return k.first == nil
}

// oldest returns the standby that has been kept longest, and how long it stays; nil if there is
// none.
func (k *kept) oldest() (s *standby, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first == nil {
		return nil, 0
	}
	return k.first, time.Until(k.first.since.Add(k.keep))
}

// standby is a session.Tenant. Its loss is not reported: no caller has a Lock of it.

// Revoke implements place.Revocable: no caller uses the place, so it leaves the queue.
func (s *standby) Revoke(reason string) { s.keeper.retire(s, false) }

// Vacate implements session.Tenant.
func (s *standby) Vacate() { s.keeper.retire(s, true) }

// MarkLost implements session.Tenant.
func (s *standby) MarkLost() bool { return true }

// Finish implements session.Tenant.
func (s *standby) Finish(error, time.Time) {}

// Report implements session.Tenant.
func (s *standby) Report() {}

// Review implements session.Tenant.
func (s *standby) Review() {}

// About implements session.Tenant.
func (s *standby) About() (name string, since time.Time) { return "", time.Time{} }

// keepLocked keeps the place of a hold that is over, if no goroutine of this process wants
// the name. It returns false if the place has to leave ZooKeeper's queue. The caller calls
// kept.settle when mu is not held any more.
func (t *turnstile) keepLocked(h *hold) bool {
	ts := t.turnstiles
	if ts.kept.keep == 0 || t.queue.Len() > 0 || t.leader != nil || t.holds > 0 || t.separateWriters.Load() > 0 {
		return false
	}
	s := t.last
	if s == nil || s.place != h.place {
		s = &standby{keeper: t, place: h.place}
	}
	s.trace = h.Origin().Trace
	if !h.place.Keep(s, t) {
		return false
	}
	if !ts.kept.add(s) {
		h.place.EndHold(s)
		return false
	}
	t.standby, t.last = s, s
	ts.countStandby(t, true)
	return true
}

// unkeepLocked ends the time of a standby. Its place is spent then.
func (t *turnstile) unkeepLocked(s *standby) {
	t.standby = nil
	t.turnstiles.kept.remove(s)
	s.place.EndHold(s)
}

// takeUpLocked grants a kept place to a request. If that is not possible, it returns the
// place for the request to begin with as the leader; nil for a try that needs another place.
func (t *turnstile) takeUpLocked(r *request) (granted bool, start *place.Place) {
	s := t.standby
	t.unkeepLocked(s)
	defer t.turnstiles.countStandby(t, false)
	switch passable, granted := t.grantLocked(s.place, r); {
	case granted:
		return true, nil
	case !passable && r.Try:
		// The try waits until the place is gone, and then looks at the queue.
		s.place.Remove()
		return false, nil
	}
	return false, s.place
}

// retire implements keeper. The delete is sent before the turnstile can be removed, so an
// acquisition that comes later sends its create behind it.
func (t *turnstile) retire(s *standby, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.standby != s {
		return
	}
	t.unkeepLocked(s)
	if !lost {
		s.place.Remove()
	}
	t.turnstiles.countStandby(t, false)
}

// Recalled implements place.Keeper. If no goroutine uses the place now, it leaves the queue.
// Otherwise the limits of hand-over count from now on, and others read of its holder.
func (t *turnstile) Recalled(p *place.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Recall(!t.turnstiles.localContenders(t))
	if s := t.standby; s != nil && s.place == p {
		t.unkeepLocked(s)
		p.Remove()
		t.turnstiles.countStandby(t, false)
		return
	}
	if !t.shareForGoodLocked(p) {
		p.Describe(nil)
	}
}

// makeWay makes the places leave ZooKeeper's queue that this client keeps for the names of a
// request. The request takes a separate place, and would wait for them, or conflict with
// them. The deletes are sent before the request's create, which does not wait for them.
func (ts *turnstiles) makeWay(r *request) {
	for _, w := range r.Wants {
		ts.mu.Lock()
		t := ts.byPath[w.Path]
		ts.mu.Unlock()
		t.mu.Lock()
		s := t.standby
		t.mu.Unlock()
		if s != nil {
			t.retire(s, false)
		}
	}
}

// countStandby counts the use of a turnstile by its standby, which begins or ends.
func (ts *turnstiles) countStandby(t *turnstile, begins bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if begins {
		ts.countUsesLocked(t, 1, true)
	} else {
		ts.countUsesLocked(t, -1, false)
	}
}

// localContenders reports whether more than one goroutine of this process uses a name, apart
// from those that share a hold.
func (ts *turnstiles) localContenders(t *turnstile) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return t.uses > 1
}
