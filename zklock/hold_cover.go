package zklock

import (
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// joinAs is join, unless the hold has become a reader's and r wants to write.
func (h *hold) joinAs(r *request) (l *Lock, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Mode == queue.Exclusive && h.mode == queue.Shared {
		return nil, false
	}
	return h.joinLocked(r.Ctx), true
}

// touches reports whether the hold has one of the names wanted.
func (h *hold) touches(wants []place.Want) bool {
	for _, w := range wants {
		if h.find(w.Path) != nil {
			return true
		}
	}
	return false
}

// uncovered says why the hold cannot be joined by a request for these names: it
// lacks one of them, or has it in a mode that does not allow what is wanted. It
// returns nil if it can.
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
