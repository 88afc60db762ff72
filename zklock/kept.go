package zklock

import (
	"container/list"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// kept has the places that a client keeps in ZooKeeper's queue while no goroutine of its
// process uses them. A place is kept for the setting keep. If there are more than keep_max,
// the one that was not used for the longest time leaves the queue.
//
// Invariants:
//   - A standby is in byAge if and only if it is the standby of its turnstile. Both change
//     under that turnstile's mu.
//   - While byAge is not empty, run is running, or the pool is closed.
//   - After close, no place is kept.
type kept struct {
	keep time.Duration // 0: none is kept
	max  int
	pool *session.Pool

	mu      sync.Mutex
	byAge   list.List // guarded by mu; of *standby, the one kept longest first
	running bool      // guarded by mu
	closed  bool      // guarded by mu
}

// keeper is what a kept place was kept for: its name's turnstile.
type keeper interface {
	// retire ends the time of a standby, unless the place was taken up meanwhile. lost means
	// that the place is gone already; otherwise it leaves ZooKeeper's queue.
	retire(s *standby, lost bool)
}

// standby has a kept place, as a hold has the place of a lock, so that the end of the session
// or the deletion of the node ends it, too.
type standby struct {
	keeper keeper
	place  *place.Place
	trace  string // the traceparent of the acquisition that held the place last
	since  time.Time
	at     *list.Element // guarded by kept.mu
}

// add adds a standby. It returns false if nothing is kept any more. oldest, if not nil, is a
// standby whose place has to leave the queue because there are too many.
func (k *kept) add(s *standby) (oldest *standby, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, false
	}
	s.at = k.byAge.PushBack(s)
	if !k.running {
		k.running = k.pool.Spawn(k.run)
	}
	if k.byAge.Len() > k.max {
		oldest = k.byAge.Front().Value.(*standby)
	}
	return oldest, true
}

// remove takes a standby out.
func (k *kept) remove(s *standby) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byAge.Remove(s.at)
}

// len returns how many places are kept.
func (k *kept) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byAge.Len()
}

// close makes all kept places leave the queue.
func (k *kept) close() {
	k.mu.Lock()
	k.closed = true
	var all []*standby
	for e := k.byAge.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*standby))
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
		oldest, wait := k.next()
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

// next returns the standby that has been kept longest, and how long it stays. If there is
// none, run ends.
func (k *kept) next() (oldest *standby, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.byAge.Front()
	if first == nil {
		k.running = false
		return nil, 0
	}
	oldest = first.Value.(*standby)
	return oldest, time.Until(oldest.since.Add(k.keep))
}

// The methods of session.Tenant. A loss of a kept place is not reported: no caller has a Lock
// of it.

// LeaveLocked implements session.Tenant.
func (s *standby) LeaveLocked() { s.place.EndHoldLocked(s) }

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

// Since implements session.Tenant.
func (s *standby) Since() time.Time { return time.Time{} }
