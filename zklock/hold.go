package zklock

import (
	"context"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// hold is the stay of a lock in a place, from the grant to the release or the loss. Each
// caller has a Lock, which refers to a handle of the hold. There are several handles if
// the hold was joined: by readers of one process that share a place, or with Reenter.
//
// Invariants:
//   - live and over are set once each, and never cleared: live by Begin, over by the release of
//     the last handle or by a loss before it. A hold that is over before it is live never is, and
//     no caller gets a Lock of it.
//   - A handle is added only while over is not set, so no handle outlives its hold.
//   - The next hold of the same place begins after over was set.
type hold struct {
	turnstiles *turnstiles
	place      *place.Place
	turnstile  *turnstile // nil if the place is not handed over
	name       string
	wants      []place.Want

	mu      mutex.Mutex[mutex.Inner]
	origin  place.Origin  // guarded by mu; of the request that was granted the place; SetLabel changes its label
	token   Token         // guarded by mu; of the handles that join from now on; a Downgrade changes it
	handles []*handle     // those not yet released, the oldest first; guarded by mu until over is set; after a loss only Finish and Report use them
	mode    queue.Mode    // guarded by mu; a Downgrade changes it
	over    bool          // guarded by mu
	live    bool          // guarded by mu; the place was granted: see place.Place.Grant
	counted bool          // guarded by turnstile.mu; turnstile.holds includes it
	txns    int32         // guarded by mu; Txns under way
	settled chan struct{} // guarded by mu; closed when txns reaches 0; made when it leaves 0

	candidacy bool // WithCandidacy; never changes

	grants    *request   // the request that is being granted the place; nil once Begin has returned
	first     handle     // that of the request which was granted the place
	firstSlot [1]*handle // the array of handles at first
}

// isOver reports whether the hold has been released or lost.
func (h *hold) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// shared reports whether other holds may exist at the same time.
func (h *hold) shared() bool { return h.currentMode().Joins() }

func (h *hold) currentMode() queue.Mode {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mode
}

// Origin implements place.Holder.
func (h *hold) Origin() place.Origin {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.origin
}

// Begin implements place.Holder. The hold uses its names before it can be lost, because a loss ends
// that use.
func (h *hold) Begin(turn uint32) bool {
	r := h.grants
	h.grants = nil
	h.turnstiles.served(r, h.wants)
	h.mu.Lock()
	lost := h.over
	h.live, h.token.Turn = !lost, turn
	h.first.token = h.token
	lock := h.first.strong // which Review lets go of from now on
	h.mu.Unlock()
	if lost {
		h.turnstiles.vacated(h)
		h.turnstiles.waitAgain(r)
		return false
	}
	r.lock = lock
	return true
}

// RecallHandler implements place.Holder.
func (h *hold) RecallHandler() place.RecallHandler { return h.turnstile }

// join adds a handle for a request and returns its Lock. It returns nil if the hold is over, or
// if it has become a reader's and the request is a writer's.
func (h *hold) join(r *request) *Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || !h.mode.Covers(r.Mode) {
		return nil
	}
	hd := &h.first
	if hd.hold == nil {
		h.handles = h.firstSlot[:0]
	} else {
		hd = new(handle)
	}
	hd.hold, hd.token, hd.hookCtx, hd.acquired = h, h.token, r.Ctx, time.Now()
	hd.strong = &Lock{hd}
	h.handles = append(h.handles, hd)
	return hd.strong
}

// part removes a handle that is being released. last reports that it was the last one,
// so that the hold is over now. lost reports that the hold was lost before.
func (h *hold) part(hd *handle) (last, lost bool) {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return false, true // no release ends a hold that still has this handle
	}
	// No reference to the handle may stay in the array (DeleteFunc clears it). A
	// handle that joined with Reenter refers, through the context of its acquisition,
	// to the Lock that it joined. That Lock's clean-up refers to the hold, and nothing
	// that the clean-up refers to may refer to the Lock, or it is never collected.
	h.handles = slices.DeleteFunc(h.handles, func(other *handle) bool { return other == hd })
	last = len(h.handles) == 0
	h.over = last
	h.mu.Unlock()
	if !last {
		hd.letGoOfContext() // a successor's first handle lives as long as the hold
	}
	return last, false
}

// giveBack ends a hold whose last handle was released. The place is passed on to a waiter of this
// process, or is kept, or leaves the queue, with async in the background. handed reports that it was
// passed on as it is, or is kept; for deleted and err see place.Place.Release.
func (h *hold) giveBack(ctx context.Context, async bool) (handed, deleted bool, err error) {
	defer h.turnstiles.vacated(h)
	limit := h.awaitTxns(ctx)
	h.place.EndHold(h)
	if h.turnstile != nil {
		if taken, handed := h.turnstile.pass(h); taken {
			return handed, false, nil
		}
	}
	if async {
		h.place.ReleaseAsync(ctx)
		return false, false, nil
	}
	deleted, err = h.place.Release(ctx, limit)
	return false, deleted, err
}

// drop gives a hold back whose requester has stopped waiting. It does so in the
// background, and calls no Release hook.
func (h *hold) drop(l *Lock) {
	if !l.end(byRelease) {
		return
	}
	if last, _ := h.part(l.handle); last {
		_, _, _ = h.giveBack(h.place.Desk.Context(), true)
	}
}

// MarkLost implements session.Hold.
func (h *hold) MarkLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.over = true
	return h.live
}

// Finish implements session.Hold. It does not report the loss of handles that were released by
// then. It locks no mutex except those of the handles, so that no other operation can keep a
// handle from ending.
func (h *hold) Finish(cause error, at time.Time) {
	err := &LostError{Name: h.name, Cause: cause, At: at}
	h.handles = slices.DeleteFunc(h.handles, func(hd *handle) bool { return !hd.end(err) })
}

// Vacate implements session.Hold.
func (h *hold) Vacate() {
	if h.turnstile != nil {
		h.turnstile.serve(h)
	}
	h.turnstiles.vacated(h)
}

// Report implements session.Hold. Afterwards the hold refers to no handle; see part for
// the reason.
func (h *hold) Report() {
	lost := h.handles
	h.handles = nil
	for _, hd := range lost {
		hd.reportLost()
	}
}

// beginTxn counts a Txn as under way. It returns false if the hold is over.
func (h *hold) beginTxn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	if h.txns++; h.txns == 1 {
		h.settled = make(chan struct{})
	}
	return true
}

func (h *hold) endTxn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.txns--; h.txns == 0 {
		close(h.settled)
	}
}

// awaitTxns waits until no Txn of the hold is under way, until ctx ends, or until a session
// timeout has passed. It returns what is left of the timeout. A Txn that is still under way could
// be applied while the next holder has the lock. So awaitTxns marks the place, which is then not
// passed on: its node is deleted, and the check at the beginning of the Txn fails.
func (h *hold) awaitTxns(ctx context.Context) (left time.Duration) {
	limit := h.place.Desk.Timeout()
	h.mu.Lock()
	settled, busy := h.settled, h.txns > 0
	h.mu.Unlock()
	if !busy {
		return limit
	}
	began := time.Now()
	session.Sleep(ctx, limit, settled)
	select {
	case <-settled:
	default:
		h.place.Doubt()
	}
	return max(0, limit-time.Since(began))
}
