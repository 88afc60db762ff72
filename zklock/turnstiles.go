package zklock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// turnstiles has a turnstile for each name that a client holds, waits for or keeps, and what all
// of them need of the client.
type turnstiles struct {
	cfg      config
	hooks    Hooks
	places   *place.Shared
	pool     *session.Pool[*place.Session]
	counters counters

	closing context.Context         // ends, with cause ErrClosed, when the client acquires nothing more
	close   context.CancelCauseFunc // ends closing

	mu       mutex.Mutex[mutex.Inner]
	byPath   map[string]*turnstile // guarded by mu; no entry if the name is neither used nor kept
	used     int                   // guarded by mu; how many of them are used, and not only kept
	underway map[*request]struct{} // guarded by mu; acquisitions under way
	idle     chan struct{}         // guarded by mu; if not nil, closed when byPath is empty; made after closing has ended

	standbys  standby      // guarded by mu; the ends of the list of active standbys: next has been active for the longest time
	keptCount atomic.Int32 // how many there are, one for each kept name; changed under mu
	endingOld atomic.Bool  // endOld runs, or is about to
}

// config has the settings of a Client. They are checked.
type config struct {
	place.Settings                                             // for places and sessions
	handoverLimit, keepMax, maxWaiters, maxNames int           // 0: no hand-over, and readers do not share places; no limit
	handoverTime, keep                           time.Duration // 0: no hand-over; no place is kept between two uses
	acquireStacks                                bool
	driverOptions                                []any
}

// counters are totals since the client was opened.
type counters struct {
	acquired, failed, contended, lost atomic.Uint64
	handovers, forgotten, reaped      atomic.Uint64
	waited                            atomic.Int64
}

// init makes what turnstiles consist of. Their settings are set.
func (ts *turnstiles) init(connector driver.Connector) {
	ts.places = place.NewShared(&ts.cfg.Settings)
	ts.pool = session.NewPool[*place.Session](&ts.cfg.Settings.Settings, connector)
	ts.standbys.previous, ts.standbys.next = &ts.standbys, &ts.standbys
	ts.byPath, ts.underway = make(map[string]*turnstile), make(map[*request]struct{})
	ts.closing, ts.close = context.WithCancelCause(context.Background())
	place.Serve(ts.places, ts.pool, ts.inUse)
}

// refuse makes all acquisitions fail with ErrClosed: those under way and later ones. No place is
// kept from then on.
func (ts *turnstiles) refuse() {
	ts.close(errs.ErrClosed)
	ts.mu.Lock()
	var waits []context.CancelCauseFunc
	for r := range ts.underway {
		if r.cancel != nil { // else it has its lock in a moment, or context finds that the client refuses it
			waits = append(waits, r.cancel)
		}
	}
	ts.mu.Unlock()
	for _, cancel := range waits {
		cancel(errs.ErrClosed)
	}
	for s, _ := ts.oldest(); s != nil; s, _ = ts.oldest() {
		s.end(true)
	}
}

// unused returns a channel that is closed when no name is in use. It is called after refuse.
func (ts *turnstiles) unused() <-chan struct{} {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.idle == nil {
		ts.idle = make(chan struct{})
		ts.notifyIdleLocked()
	}
	return ts.idle
}

// inUse reports whether the client holds, waits for or keeps the name with this path.
func (ts *turnstiles) inUse(path string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byPath[path] != nil
}

// startWaiting counts an acquisition as a user of the turnstiles of all names that it
// wants, and returns that of the first name. If a limit is reached, or the client is
// closed or shutting down, it returns an error. It makes no request.
func (ts *turnstiles) startWaiting(r *request) (*turnstile, error) {
	if limit := ts.cfg.maxWaiters; limit > 0 && (r.maxWaiters == 0 || limit < r.maxWaiters) {
		r.maxWaiters = limit
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closing.Err() != nil {
		return nil, errs.ErrClosed // refuse may have notified those in underway already
	}
	fresh := 0
	for _, w := range r.Wants {
		t := ts.byPath[w.Path]
		switch {
		case t == nil || t.uses == 0:
			fresh++
		case !r.Try && !w.Kind.Mode.Joins() && !r.roomLocked(t):
			return nil, errs.ErrCrowded // it would have to wait behind those that wait already
		}
	}
	if limit := ts.cfg.maxNames; limit > 0 && fresh > 0 && ts.used+fresh > limit {
		return nil, fmt.Errorf("%w: max_names=%d names are in use", errs.ErrTooManyWaiters, limit)
	}
	ts.underway[r] = struct{}{}
	for _, w := range r.Wants {
		t := ts.byPath[w.Path]
		if t == nil {
			t = &turnstile{turnstiles: ts, path: w.Path}
			t.granted.L = &t.mu
			ts.byPath[w.Path] = t
		}
		ts.useLocked(t)
	}
	return ts.byPath[r.Wants[0].Path], nil
}

// roomLocked reports whether the request's limit allows one more waiter for a name. turnstiles.mu is
// held.
func (r *request) roomLocked(t *turnstile) bool {
	return r.maxWaiters == 0 || int(t.waiting) < r.maxWaiters
}

// mustWait counts an acquisition as one that has to wait for other contenders. It returns false,
// and counts nothing, if the limit of waiters is reached.
//
// The limit is checked here because only now is it known that the acquisition has to
// wait: a reader that joins readers, one that gets a free permit, and a try do not. An
// acquisition that came earlier, but had to ask the ensemble first, does not displace one
// that already waits.
func (ts *turnstiles) mustWait(r *request) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !r.served { // otherwise another goroutine has just granted it the lock
		for _, w := range r.Wants {
			if !r.roomLocked(ts.byPath[w.Path]) {
				return false
			}
		}
		ts.blockLocked(r, true)
	}
	r.waitFrom = time.Now()
	return true
}

// blockLocked begins or ends the count of an acquisition as one that waits for other contenders.
func (ts *turnstiles) blockLocked(r *request, blocked bool) {
	if r.blocked == blocked {
		return
	}
	r.blocked = blocked
	for _, w := range r.Wants {
		if t := ts.byPath[w.Path]; blocked {
			t.waiting++
		} else {
			t.waiting--
		}
	}
}

// stopWaiting ends what startWaiting and context began.
func (ts *turnstiles) stopWaiting(r *request) {
	if r.cancel != nil {
		r.cancel(nil)
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.underway, r)
	ts.blockLocked(r, false)
	for _, w := range r.Wants {
		ts.endUseLocked(ts.byPath[w.Path])
	}
}

// served no longer counts an acquisition as waiting, because it has got its lock: it may take a
// while until its goroutine runs. uses are the names that a new hold uses from now on.
func (ts *turnstiles) served(r *request, uses []place.Want) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, w := range uses {
		ts.useLocked(ts.byPath[w.Path])
	}
	r.served = true
	ts.blockLocked(r, false)
}

// waitAgain is called when an acquisition's lock was lost before Acquire returned. It
// counts the acquisition as waiting again, if it had to wait before.
func (ts *turnstiles) waitAgain(r *request) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	r.served = false
	ts.blockLocked(r, !r.waitFrom.IsZero()) // waitCtx is the requester's own, and this may be another goroutine
}

// vacated ends the use of its names by a hold that is over.
func (ts *turnstiles) vacated(h *hold) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, w := range h.wants {
		ts.endUseLocked(ts.byPath[w.Path])
	}
}

// useLocked begins a use of a name: by an acquisition under way or by a hold.
func (ts *turnstiles) useLocked(t *turnstile) {
	if t.uses++; t.uses == 1 {
		ts.used++
	}
}

// endUseLocked ends one use of a name.
func (ts *turnstiles) endUseLocked(t *turnstile) {
	if t.uses--; t.uses == 0 {
		ts.used--
		ts.removeLocked(t)
	}
}

// removeLocked removes a turnstile that is neither used nor kept.
func (ts *turnstiles) removeLocked(t *turnstile) {
	if t.uses == 0 && !t.kept {
		delete(ts.byPath, t.path)
		ts.notifyIdleLocked()
	}
}

// notifyIdleLocked notifies Shutdown if no turnstile is left. None is added after that.
func (ts *turnstiles) notifyIdleLocked() {
	if ts.idle != nil && len(ts.byPath) == 0 {
		close(ts.idle)
	}
}

// hasOthers reports whether this client has, or may get, more than one place for a name: more
// than one goroutine uses the name, apart from those that share a hold, or one does while the
// client keeps a place.
func (ts *turnstiles) hasOthers(t *turnstile) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return t.uses > 1 || t.uses == 1 && t.kept
}
