package zklock

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// hold is what is held: a queue node whose turn it is. The handles that callers
// have on it are Locks; several if one was joined with Reenter.
//
// Invariants:
//   - over is set once, by the release of the last handle or by a loss,
//     whichever is first, and ended is closed then. Nothing clears it.
//   - A handle is added only while over is not set, so that no handle outlives
//     what it is a handle on.
type hold struct {
	client *Client
	s      *session
	c      *contender
	name   string
	path   string
	mode   Mode
	token  Token
	own    *watched      // on our own node, if a wait came before the grant; set before the grant
	timer  *list.Element // guarded by ownWatches.mu
	ended  chan struct{} // closed when over is set

	mu      sync.Mutex
	handles []*Lock // guarded by mu; not yet released
	over    bool    // guarded by mu
}

// grant makes a hold of a contender whose turn it is, if the session is alive
// and its lease long enough at this very moment.
func (s *session) grant(h *hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leftLocked() < s.lease.least() {
		return false
	}
	s.holds[h] = struct{}{}
	s.client.granted(h) // before anything can lose it
	return true
}

// forget takes a hold off the session's list.
func (s *session) forget(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// join adds a handle, or returns nil if the hold is over. ctx is the one that
// the Acquire hook returned.
func (h *hold) join(ctx context.Context) *Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil
	}
	l := &Lock{hold: h, hookCtx: ctx, since: now(), done: make(chan struct{})}
	h.handles = append(h.handles, l)
	return l
}

// part takes a handle off. last says that it was the last one, and that the
// hold is over now.
func (h *hold) part(l *Lock) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.handles {
		if h.handles[i] == l {
			h.handles = append(h.handles[:i], h.handles[i+1:]...)
			break
		}
	}
	if h.over || len(h.handles) > 0 {
		return false
	}
	h.over = true
	close(h.ended)
	return true
}

// lose ends the hold and tells every handle. It reports whether it was this
// call that did so. The caller has taken the hold off the session's list.
func (h *hold) lose(cause error, at time.Time) bool {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return false
	}
	h.over = true
	close(h.ended)
	handles := h.handles
	h.handles = nil
	h.mu.Unlock()

	h.client.ended(h)
	for _, l := range handles {
		l.lose(&LostError{Name: h.name, Cause: cause, At: at})
	}
	return true
}

// loseNode is lose for a hold whose node was deleted by somebody else. The
// session lives on.
func (h *hold) loseNode() {
	h.s.forget(h)
	if h.lose(errNodeDeleted, time.Now()) {
		h.s.own.remove(h)
		h.s.finish(h.c)
	}
}

// giveBack takes the node of a hold that is over out of the queue.
func (h *hold) giveBack(ctx context.Context) error {
	h.s.forget(h)
	h.s.own.remove(h)
	err := h.s.release(ctx, h.c)
	if !errors.Is(err, ErrReleasePending) {
		h.client.parents.noteRelease(h.path, h.s.ds.ID())
	}
	h.client.ended(h)
	return err
}
