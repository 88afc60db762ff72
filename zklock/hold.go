package zklock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// hold is a place whose turn it is, and what is held by it. The handles that
// callers have on it are Locks: several if it was joined, by readers of one
// process that share a place, or with Reenter.
//
// Invariants:
//   - over is set once, by the release of the last handle or by a loss,
//     whichever is first, and ended is closed then. Nothing clears it.
//   - A handle is added only while over is not set, so that no handle outlives
//     what it is a handle on.
//   - The next hold of the same place begins after over was set.
type hold struct {
	all       *turnstiles
	place     *place.Place
	turnstile *turnstile // nil for those that take no part in hand-over
	name      string
	wants     []place.Want
	origin    place.Origin // of the request it was granted to

	mu      sync.Mutex
	mode    queue.Mode    // guarded by mu; a Downgrade changes it
	token   Token         // guarded by mu; of the handles to come; a Downgrade changes it
	handles []*handle     // guarded by mu; not yet released
	over    bool          // guarded by mu
	counted bool          // guarded by turnstile.mu; it is one of the turnstile's holds
	txns    int           // guarded by mu; Txns under way
	settled chan struct{} // guarded by mu; not nil: closed when txns reaches 0

	lost []*handle // by MarkLost, Finish and Tell only, which come one after the other
}

// isOver reports whether the hold has been released or lost.
func (h *hold) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// shared reports whether others may hold beside it.
func (h *hold) shared() bool { return h.currentMode() == queue.Shared }

func (h *hold) currentMode() queue.Mode {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mode
}

// join adds a handle, or returns nil if the hold is over. ctx is the one that
// the Acquire hook returned.
func (h *hold) join(ctx context.Context) *Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joinLocked(ctx)
}

func (h *hold) joinLocked(ctx context.Context) *Lock {
	if h.over {
		return nil
	}
	l := &Lock{&handle{hold: h, token: h.token, hookCtx: ctx, since: time.Now()}}
	l.strong = l
	h.handles = append(h.handles, l.handle)
	return l
}

// part takes a handle off. last says that it was the last one, and that the
// hold is over now. lost says that the hold was lost before.
func (h *hold) part(l *handle) (last, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false, true // no release ends a hold that still has this handle
	}
	// Nothing of it may stay in the array: a handle that joined refers, by the
	// context it was acquired with, to the Lock that it joined, and what a Lock's
	// clean-up refers to must not refer to the Lock.
	h.handles = slices.DeleteFunc(h.handles, func(other *handle) bool { return other == l })
	if len(h.handles) > 0 {
		return false, false
	}
	h.over = true
	return true, false
}

// overtaken is what comes of the release of a hold that was lost after its handle
// was marked as released: another program had deleted a node, or the nodes that
// no client has deleted go with the session.
func (h *hold) overtaken() (deleted bool, err error) {
	if h.place.Deleted() {
		return true, nil
	}
	return false, errs.ReleasePending(h.place.Desk.Cause())
}

// giveBack is what the release of the last handle comes to: the place is passed
// on to somebody who waits in this process, or leaves the queue. handed says
// that it was passed on; see place.Place.Release for the rest.
func (h *hold) giveBack(ctx context.Context) (handed, deleted bool, err error) {
	defer h.all.released(h)
	limit := h.awaitTxns(ctx)
	h.place.Over(h)
	if h.turnstile != nil {
		if taken, handed := h.turnstile.pass(h); taken {
			return handed, false, nil
		}
	}
	deleted, err = h.place.Release(ctx, limit)
	return false, deleted, err
}

// drop gives a hold back that its requester has no use for, in the background
// and without a word to the hooks.
func (h *hold) drop(l *Lock) {
	if !l.end(ErrReleased) {
		return
	}
	if last, _ := h.part(l.handle); !last {
		return
	}
	defer h.all.released(h)
	h.place.Over(h)
	if h.turnstile != nil {
		if taken, _ := h.turnstile.pass(h); taken {
			return
		}
	}
	h.place.Remove()
}

// LeaveLocked implements session.Tenant.
func (h *hold) LeaveLocked() { h.place.OverLocked(h) }

// MarkLost implements session.Tenant.
func (h *hold) MarkLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.over = true
	h.lost, h.handles = h.handles, nil
	h.all.losing()
	return true
}

// Finish implements session.Tenant. Of handles that were released just now nothing is
// told. It needs no mutex but the handles' own: whatever else goes on, every handle ends.
func (h *hold) Finish(cause error, at time.Time) {
	err := &LostError{Name: h.name, Cause: cause, At: at}
	h.lost = slices.DeleteFunc(h.lost, func(l *handle) bool { return !l.end(err) })
}

// Vacate implements session.Tenant.
func (h *hold) Vacate() {
	if h.turnstile != nil {
		h.turnstile.lost(h)
	}
	h.all.lost(h)
}

// Tell implements session.Tenant. Afterwards the hold refers to no handle: see part.
func (h *hold) Tell() {
	lost := h.lost
	h.lost = nil
	for _, l := range lost {
		l.tellLost()
	}
}
