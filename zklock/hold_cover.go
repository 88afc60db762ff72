package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// joinAs is join for the request r. ok is false if the hold has become a reader's, and r
// wants to write.
func (h *hold) joinAs(r *request) (l *Lock, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Mode == queue.Exclusive && h.mode == queue.Shared {
		return nil, false
	}
	return h.joinLocked(r.Ctx, time.Now()), true
}

// touches reports whether the hold has at least one of the names wanted.
func (h *hold) touches(wants []place.Want) bool {
	for _, w := range wants {
		if h.find(w.Path) != nil {
			return true
		}
	}
	return false
}

// uncovered returns why a request for these names cannot join the hold: the hold lacks
// one of them, or has it in a mode that does not allow what is wanted. It returns nil if
// the request can join.
func (h *hold) uncovered(wants []place.Want) error {
	mode := h.currentMode()
	var why error
	for _, w := range wants {
		mine := h.find(w.Path)
		if mine == nil {
			why = errPartHeld
			continue
		}
		switch have := mine.Kind; {
		case have.Mode == queue.Permit || w.Kind.Mode == queue.Permit:
			if have != w.Kind {
				return errOtherKind
			}
		case w.Kind.Mode == queue.Exclusive && (mode == queue.Shared || have.Mode == queue.Shared):
			return errReaderWrites
		}
	}
	return why
}

func (h *hold) find(path string) *place.Want {
	for i := range h.wants {
		if h.wants[i].Path == path {
			return &h.wants[i]
		}
	}
	return nil
}
