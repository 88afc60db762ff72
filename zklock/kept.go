package zklock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// kept has the places that a client keeps in ZooKeeper's queue while no goroutine of its
// process uses them. A place is kept for the setting keep. If there are more than keep_max,
// the one that was not used for the longest time leaves the queue.
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
	running     bool         // guarded by mu
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

// add adds a standby. It returns false if nothing is kept any more. oldest, if not nil, is a
// standby whose place has to leave the queue because there are too many. If start is true,
// the caller has to call k.start.
func (k *kept) add(s *standby) (oldest *standby, start, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, false, false
	}
	s.since = time.Now()
	if s.previous = k.last; k.last != nil {
		k.last.next = s
	} else {
		k.first = s
	}
	k.last = s
	if k.n.Add(1) > int64(k.max) {
		oldest = k.first
	}
	start = !k.running
	k.running = true
	return oldest, start, true
}

// excess returns the standby that has been kept longest, if there are too many; else nil.
func (k *kept) excess() *standby {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n.Load() > int64(k.max) {
		return k.first
	}
	return nil
}

// settle does what follows from add.
func (k *kept) settle(oldest *standby, start bool) {
	if start {
		k.start()
	}
	for ; oldest != nil; oldest = k.excess() {
		oldest.keeper.retire(oldest, false)
	}
}

// start starts run. If the pool is closed, its sessions end, and the kept places with them.
func (k *kept) start() { k.pool.Spawn(k.run) }

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
	var all []*standby
	for s := k.first; s != nil; s = s.next {
		all = append(all, s)
	}
	k.mu.Unlock()
	for _, s := range all {
		s.keeper.retire(s, false)
	}
}

// run makes places leave the queue when they have been kept for long enough. It ends when
// none is kept.
func (k *kept) run() {
	for {
		oldest, wait := k.oldest()
		switch {
		case oldest == nil:
			return
		case wait <= 0:
			oldest.keeper.retire(oldest, false)
		case !session.Sleep(k.pool.Ctx, wait, nil):
			return
		}
	}
}

// oldest returns the standby that has been kept longest, and how long it stays. If there is
// none, run ends.
func (k *kept) oldest() (s *standby, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first == nil {
		k.running = false
		return nil, 0
	}
	return k.first, time.Until(k.first.since.Add(k.keep))
}

// The methods of session.Tenant. A loss of a kept place is not reported: no caller has a Lock
// of it.

// Revoke implements place.Revocable: no caller uses the place, so it leaves the queue.
func (s *standby) Revoke(reason string) { s.keeper.retire(s, false) }

// MarkLost implements session.Tenant.
func (s *standby) MarkLost() bool { return true }

// Finish implements session.Tenant.
func (s *standby) Finish(error, time.Time) {}

// Vacate implements session.Tenant.
func (s *standby) Vacate() { s.keeper.retire(s, true) }

// Report implements session.Tenant.
func (s *standby) Report() {}

// Review implements session.Tenant.
func (s *standby) Review() {}

// About implements session.Tenant.
func (s *standby) About() (name string, since time.Time) { return "", time.Time{} }
