package local

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Hold is the stay of a lock in a place, from the grant to the release or the loss. Each
// caller has a Handle of it. There are several if the hold was joined: by readers of one process that
// share a place, or by re-entry.
//
// Invariants:
//   - begin sets live once; the release of the last handle, or a loss before that, sets over once. Neither
//     is cleared. A hold that is over before it is live never becomes live, and no caller gets a handle
//     of it.
//   - A handle is added only while over is not set, so no handle outlives its hold.
//   - The next hold of the same place begins after over was set. The local queue counts a lost hold until
//     all its handles have ended: until finished is set, at least.
type Hold struct {
	home  home
	place *place.Place
	name  string
	wants []place.Want

	mu      mutex.Mutex[mutex.Inner]
	origin  place.Origin  // guarded by mu; of the request that was granted the place; SetLabel changes its label
	handles []Handle      // those not yet released, the oldest first; guarded by mu until over is set; after a loss only Finish and Report use them
	turn    uint32        // guarded by mu; of the handles that join from now on; a Downgrade changes it
	mode    queue.Mode    // guarded by mu; a Downgrade changes it
	over    bool          // guarded by mu
	live    bool          // guarded by mu; the place was granted: see place.Place.Grant
	counted bool          // guarded by the mu of its local queue, whose holds includes it
	txns    int32         // guarded by mu; Txns under way
	settled chan struct{} // guarded by mu; closed when txns reaches 0; made when it leaves 0

	finished  atomic.Bool // the hold was lost, and all its handles have ended
	candidacy bool        // WithCandidacy; never changes
	apart     bool        // the place is not handed over; never changes
	admitted  bool        // its request was let through the gate; never changes

	firstSlot [1]Handle // the array of handles at first
}

// IsOver reports whether the hold has been released or lost.
func (h *Hold) IsOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// shared reports whether other holds may exist at the same time.
func (h *Hold) shared() bool { return h.Mode().Joins() }

// Mode returns how the place is held.
func (h *Hold) Mode() queue.Mode {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mode
}

// describe returns how the place is held, and what others read of the holder.
func (h *Hold) describe() (queue.Mode, place.Origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mode, h.origin
}

// Origin implements place.Holder.
func (h *Hold) Origin() place.Origin {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.origin
}

// begin makes the hold live, for the request that was granted the place. The hold uses its names before
// it can be lost, because a loss ends that use. It returns false if the hold was lost.
func (h *Hold) begin(r *Request, turn uint32) bool {
	h.home.served(r, h.wants)
	h.mu.Lock()
	lost := h.over
	h.live, h.turn = !lost, turn
	h.handles[0].Begin(h.tokenLocked())
	h.mu.Unlock()
	if lost {
		h.home.vacated(h.wants)
		h.home.waitAgain(r)
		return false
	}
	r.got = h
	return true
}

// tokenLocked returns the token of a handle that the hold gets now.
func (h *Hold) tokenLocked() Token { return Token{h.place.Zxid, h.turn} }

// RecallHandler implements place.Holder.
func (h *Hold) RecallHandler() place.RecallHandler { return h.home }

// Join grants a request a further handle. It returns false if the hold is over, or if it has become a
// reader's and the request is a writer's.
func (h *Hold) Join(r *Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || !h.mode.Covers(r.Mode) {
		return false
	}
	joined := r.Caller.NewHandle(h)
	joined.Begin(h.tokenLocked())
	h.handles = append(h.handles, joined)
	r.got = h
	return true
}

// part removes a handle that is being released. last reports that it was the last one,
// so that the hold is over now. lost reports that the hold was lost before.
func (h *Hold) part(hd Handle) (last, lost bool) {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return false, true // no release ends a hold that still has this handle; TestReleaseOvertakenByALoss
	}
	// No reference to the handle may stay in the array (DeleteFunc clears it). A
	// handle that joined with Reenter refers, through the context of its acquisition,
	// to the Lock that it joined. The clean-up of that Lock refers to the hold. If what the
	// clean-up refers to refers to the Lock, the Lock is never collected.
	h.handles = slices.DeleteFunc(h.handles, func(other Handle) bool { return other == hd })
	last = len(h.handles) == 0
	h.over = last
	h.mu.Unlock()
	if !last {
		hd.Parted()
	}
	return last, false
}

// Release takes a handle off the hold that its caller has released. The last one gives the place back,
// with async in the background. handed reports that the place stays: others hold it, or get it as it
// is, or it is kept. deleted reports that another client had deleted its node.
func (h *Hold) Release(ctx context.Context, hd Handle, async bool) (handed, deleted bool, err error) {
	switch last, lost := h.part(hd); {
	case lost: // after this handle was marked as released
		if deleted = h.place.Deleted(); !deleted {
			err = errs.ReleasePending(h.place.Desk.Session.Cause()) // the session has ended, and the nodes go with it
		}
	case !last:
		handed = true
	default:
		h.home.worked(h, hd.Acquired())
		handed, deleted, err = h.giveBack(ctx, async)
	}
	return handed, deleted, err
}

// giveBack ends a hold whose last handle was released. The place is passed on to a waiter of this
// process, or is kept, or leaves the queue, with async in the background. handed reports that it was
// passed on as it is, or is kept; for deleted and err see place.Place.Release.
func (h *Hold) giveBack(ctx context.Context, async bool) (handed, deleted bool, err error) {
	defer h.home.vacated(h.wants)
	limit := h.awaitTxns(ctx)
	h.place.EndHold(h)
	switch {
	case h.admitted:
		if h.home.passGate(h) {
			return false, false, nil
		}
	case !h.apart:
		if taken, handed := h.home.pass(h); taken {
			return handed, false, nil
		}
	}
	gone := h.place.Leave(ctx)
	if h.admitted {
		h.home.leavesGate(h) // after the delete was sent, so the creates of the next are behind it
	}
	if async {
		h.place.ReleaseAsync(gone)
		return false, false, nil
	}
	deleted, err = h.place.Release(ctx, gone, limit)
	return false, deleted, err
}

// Drop gives back a handle that no caller gets: its requester has stopped waiting, or a hook has panicked. It does
// so in the background, and calls no Release hook.
func (h *Hold) Drop(hd Handle) {
	if !hd.Release() {
		return
	}
	if last, _ := h.part(hd); last {
		_, _, _ = h.giveBack(h.place.Desk.Session.Context(), true)
	}
}

// MarkLost implements session.Dependent.
func (h *Hold) MarkLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.over = true
	return h.live
}

// Finish implements session.Dependent. It does not report the loss of handles that were released by
// then. It locks no mutex except those of the handles, so that no other operation can keep a
// handle from ending.
func (h *Hold) Finish(cause error, at time.Time) {
	loss := &Loss{Name: h.name, Cause: cause, At: at}
	h.handles = slices.DeleteFunc(h.handles, func(hd Handle) bool { return !hd.Lose(loss) })
	h.finished.Store(true)
}

// Vacate implements session.Dependent.
func (h *Hold) Vacate() {
	if !h.apart {
		h.home.serve(h)
	}
	if h.admitted { // TestLostHoldLeavesTheGate
		h.home.leavesGate(h)
	}
	h.home.vacated(h.wants)
}

// Report implements session.Dependent. Afterwards the hold refers to no handle; see part for
// the reason.
func (h *Hold) Report() {
	lost := h.handles
	h.handles = nil
	for _, hd := range lost {
		hd.ReportLost()
	}
}

// Revoke implements place.Revocable. A handle that joins the hold later finds the revocation
// in Attend.
func (h *Hold) Revoke(reason string) {
	var handles []Handle
	h.mu.Lock()
	if !h.over {
		handles = slices.Clone(h.handles)
	}
	h.mu.Unlock()
	for _, hd := range handles {
		hd.Revoke(reason)
	}
}

// Review implements session.Dependent: it calls Age for handles that have been held for a
// tenth of the session timeout.
func (h *Hold) Review() {
	before := time.Now().Add(-h.place.Desk.Session.Timeout() / 10)
	var old []Handle
	h.mu.Lock()
	if h.live && !h.over {
		for _, hd := range h.handles {
			if hd.Acquired().Before(before) {
				old = append(old, hd)
			}
		}
	}
	h.mu.Unlock()
	for _, hd := range old {
		hd.Age()
	}
}

// Name implements session.Dependent. For a hold of several names, they are joined by commas.
func (h *Hold) Name() string { return h.name }

// Since implements session.Dependent.
func (h *Hold) Since() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return time.Time{}
	}
	return h.handles[0].Acquired() // the first handle is the oldest
}

// Candidacy implements session.Dependent.
func (h *Hold) Candidacy() bool { return h.candidacy }
