package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
)

// reenter looks whether ctx carries a lock on something that r wants. Waiting
// for it would be waiting for oneself: that is refused, or, where the caller
// asked for it and what is held covers all that is wanted, joined. It returns
// nil and nil if ctx carries nothing of the kind.
func (c *Client) reenter(ctx context.Context, r *request, join bool) (*Lock, error) {
	l := carried(ctx, c, r.wants)
	if l == nil {
		return nil, nil
	}
	if err := l.Err(); err != nil {
		return nil, err // it was lost: whoever runs under ctx should stop, not start over
	}
	if !l.hold.place.s.alive() { // the lease is over, and nobody has noticed yet
		l.hold.place.s.end(driver.Expired, ErrLeaseOver)
		return nil, l.endedError()
	}
	if !join || !l.hold.covers(r.wants) {
		return nil, ErrDeadlock
	}
	joined, ok := l.hold.joinAs(r)
	switch {
	case !ok:
		return nil, ErrDeadlock // it was downgraded just now
	case joined == nil:
		return nil, l.endedError()
	}
	return joined, nil
}

// joinAs is join, unless the hold has become a reader's and r wants to write.
func (h *hold) joinAs(r *request) (l *Lock, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.mode == Exclusive && h.mode == Shared {
		return nil, false
	}
	return h.joinLocked(r.ctx), true
}

// touches reports whether the hold has one of the names wanted.
func (h *hold) touches(wants []want) bool {
	for _, w := range wants {
		if h.find(w.path) != nil {
			return true
		}
	}
	return false
}

// covers reports whether the hold has all of the names wanted, each in a mode
// that allows what is wanted: a reader cannot become a writer.
func (h *hold) covers(wants []want) bool {
	mode := h.currentMode()
	for _, w := range wants {
		mine := h.find(w.path)
		if mine == nil {
			return false
		}
		switch have := mine.kind; {
		case have == w.kind && (mode != Shared || have.mode == Shared):
		case have.mode == Exclusive && w.kind.mode == Shared:
		case w.kind.mode == Shared && mode == Shared:
		default:
			return false
		}
	}
	return true
}

func (h *hold) find(path string) *want {
	for i := range h.wants {
		if h.wants[i].path == path {
			return &h.wants[i]
		}
	}
	return nil
}
