package zklock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
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
	client    *Client
	place     *place
	turnstile *turnstile // nil for those that take no part in hand-over
	name      string
	wants     []want
	origin    origin // of the request it was granted to

	mu      sync.Mutex
	mode    Mode          // guarded by mu; a Downgrade changes it
	token   Token         // guarded by mu; of the handles to come; a Downgrade changes it
	handles []*handle     // guarded by mu; not yet released
	over    bool          // guarded by mu
	counted bool          // guarded by turnstile.mu; it is one of the turnstile's holds
	txns    int           // guarded by mu; Txns under way
	settled chan struct{} // guarded by mu; not nil: closed when txns reaches 0
}

// grant makes a hold of a place whose turn it is, if the session is alive, its
// lease is long enough and the place not gone at this very moment; else it
// returns nil. The hold has one handle, the requester's.
func (s *session) grant(p *place, r *request) (*hold, *Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.grantableLocked() {
		return nil, nil
	}
	h := &hold{client: s.client, place: p, turnstile: r.turnstile, name: r.name, wants: r.wants, mode: r.mode, origin: r.origin,
		token: Token{Zxid: p.zxid, Turn: p.turn}}
	l := h.join(r.ctx)
	p.turn++
	if p.granted.IsZero() {
		p.granted = time.Now()
		s.own.add(p)
	}
	p.hold = h
	s.holds[h] = struct{}{}
	s.client.granted(h, r) // before anything can lose it
	return h, l
}

// grantable reports whether a place whose turn it is could be granted now.
func (p *place) grantable() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.grantableLocked()
}

func (p *place) grantableLocked() bool {
	return !p.gone && p.s.leftLocked() >= p.s.lease.least()
}

// isOver reports whether the hold has been released or lost.
func (h *hold) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// shared reports whether others may hold beside it.
func (h *hold) shared() bool { return h.currentMode() == Shared }

func (h *hold) currentMode() Mode {
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
// hold is over now.
func (h *hold) part(l *handle) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Nothing of it may stay in the array: a handle that joined refers, by the
	// context it was acquired with, to the Lock that it joined, and what a Lock's
	// clean-up refers to must not refer to the Lock.
	h.handles = slices.DeleteFunc(h.handles, func(other *handle) bool { return other == l })
	if h.over || len(h.handles) > 0 {
		return false
	}
	h.over = true
	return true
}

// detach takes a hold that is over off its session and place.
func (h *hold) detach() {
	s := h.place.s
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
	if h.place.hold == h {
		h.place.hold = nil
	}
}

// giveBack is what the release of the last handle comes to: the place is passed
// on to somebody who waits in this process, or leaves the queue. handed says
// that it was passed on.
func (h *hold) giveBack(ctx context.Context) (handed bool, err error) {
	defer h.client.ended(h)
	limit := h.awaitTxns(ctx)
	h.detach()
	if h.turnstile != nil {
		if taken, handed := h.turnstile.pass(h); taken {
			return handed, nil
		}
	}
	err = h.place.release(ctx, limit)
	if errors.Is(err, ErrReleasePending) {
		h.client.cfg.logger.Warn("zklock: the ensemble has not confirmed a release yet; it goes on in the background, and others wait for the lock until then", "session", h.place.s.ds.ID())
	} else {
		for _, w := range h.wants {
			h.client.parents.noteRelease(w.path, h.place.s.ds.ID())
		}
	}
	return false, err
}

// drop gives a hold back that its requester has no use for, in the background
// and without a word to the hooks.
func (h *hold) drop(l *Lock) {
	if !l.finish(ErrReleased) || !h.part(l.handle) {
		return
	}
	defer h.client.ended(h)
	h.detach()
	if h.turnstile != nil {
		if taken, _ := h.turnstile.pass(h); taken {
			return
		}
	}
	h.place.remove()
}

// lost is a handle that was lost, and how.
type lost struct {
	*handle
	err *LostError
}

// lose ends the hold and every handle, unless it is over already. It calls no
// hooks: who loses more than this first ends all of it. What it returns is to be
// told of then.
func (h *hold) lose(cause error, at time.Time) []lost {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return nil
	}
	h.over = true
	handles := h.handles
	h.handles = nil
	h.mu.Unlock()

	h.detach()
	h.client.losing()
	// First whoever works under it has to know, then others may get in.
	err := &LostError{Name: h.name, Cause: cause, At: at}
	var told []lost
	for _, l := range handles {
		if l.finish(err) {
			told = append(told, lost{l, err})
		}
	}
	if h.turnstile != nil {
		h.turnstile.lost(h)
	}
	h.client.lost(h)
	return told
}

// tellLost tells the logger and the hooks of what lose has ended.
func tellLost(all []lost) {
	for _, l := range all {
		l.tellLost(l.err)
	}
}

// lose says that a node of the place was deleted by somebody else. Whoever holds
// it has lost it; what is left of it leaves the queue. The session lives on. Only
// the first call does anything: several may have noticed.
func (p *place) lose() {
	s := p.s
	s.mu.Lock()
	if p.gone {
		s.mu.Unlock()
		return
	}
	p.gone = true
	h := p.hold
	if h != nil {
		s.spareLocked() // before anybody knows, and so before anybody can close the session
	}
	s.mu.Unlock()
	if h == nil {
		p.remove()
		return
	}
	told := h.lose(ErrNodeDeleted, time.Now())
	p.removeLost()
	tellLost(told)
}
