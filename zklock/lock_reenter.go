package zklock

import (
	"context"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// reenter checks whether ctx carries a lock on a name that r wants. The caller would
// wait for itself, so that fails. If the caller gave Reenter, and the carried lock
// covers all names and modes that r wants, the request joins the lock instead.
// reenter returns nil and nil if ctx carries no such lock.
//
// Another goroutine may release the carried lock at any moment. If the handle turns
// out to be released, reenter looks again.
func (r *request) reenter(ctx context.Context) (*Lock, error) {
	for {
		l := carried(ctx, r.turnstiles, r.Wants)
		if l == nil {
			return nil, nil
		}
		joined, err := l.rejoin(r)
		if err == nil || l.Err() != ErrReleased {
			return joined, err
		}
	}
}

// rejoin is reenter for the lock that it found.
func (l *Lock) rejoin(r *request) (*Lock, error) {
	h := l.hold
	alive := h.place.Desk.Alive()
	if err := l.Err(); err != nil {
		return nil, err // after a loss the caller should stop, not acquire again
	}
	if !alive { // the lease has run out, and no other goroutine has noticed yet
		h.place.Desk.End(driver.Expired, errs.ErrLeaseOver)
		return nil, l.endedError()
	}
	if why := h.uncovered(r.Wants); why != nil {
		return nil, why
	}
	if !r.rejoins {
		return nil, ErrDeadlock
	}
	if joined := h.join(r); joined != nil {
		return joined, nil
	}
	if h.isOver() {
		return nil, l.endedError()
	}
	return nil, errReaderWrites // the lock was downgraded just now
}

// carried returns a Lock that ctx carries, that belongs to the client of ts, and that has
// one of the names wanted. It prefers one that is held to one that was lost, and returns
// nil if there is neither. Released locks do not count.
func carried(ctx context.Context, ts *turnstiles, wants []place.Want) *Lock {
	var lost *Lock
	for l := range carriedBy(ctx) {
		has := func(w place.Want) bool { return l.hold.find(w.Path) >= 0 }
		if l.hold.turnstiles != ts || !slices.ContainsFunc(wants, has) {
			continue
		}
		switch err := l.Err(); {
		case err == nil:
			return l
		case err != ErrReleased && lost == nil:
			lost = l
		}
	}
	return lost
}

// uncovered returns why a request for these names cannot join the hold: the hold lacks
// one of them, or has it in a mode that does not allow what is wanted. It returns nil if
// the request can join.
func (h *hold) uncovered(wants []place.Want) error {
	mode := h.currentMode()
	var why error
	for _, w := range wants {
		i := h.find(w.Path)
		if i < 0 {
			why = errPartHeld
			continue
		}
		switch have := h.wants[i].Kind; {
		case have.Permits != w.Kind.Permits:
			return errOtherKind
		case !mode.Covers(w.Kind.Mode) || !have.Mode.Covers(w.Kind.Mode):
			return errReaderWrites
		}
	}
	return why
}

// find returns the index in wants of the name with a path; -1 if the hold does not have it.
func (h *hold) find(path string) int {
	return slices.IndexFunc(h.wants, func(w place.Want) bool { return w.Path == path })
}
