package zklock

import (
	"context"
	"fmt"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// reenter checks whether ctx carries a lock on a name that r wants. The caller would
// wait for itself, so that fails. If the caller gave Reenter, and the carried lock
// covers all names and modes that r wants, the request joins the lock instead.
// reenter returns nil and nil if ctx carries no such lock.
//
// Another goroutine may release the carried lock at any moment. If the handle turns
// out to be released, reenter looks again.
func (a *acquisition) reenter(ctx context.Context) (*Lock, error) {
	for {
		l := carried(ctx, a.client, a.request.Wants)
		if l == nil {
			return nil, a.heldByCaller(ctx)
		}
		joined, err := l.rejoin(a)
		if err == nil || l.Err() != ErrReleased {
			return joined, err
		}
	}
}

// rejoin is reenter for the lock that it found.
func (l *Lock) rejoin(a *acquisition) (*Lock, error) {
	h := l.handle.hold
	alive := h.Alive()
	if err := l.Err(); err != nil {
		return nil, err // after a loss the caller should stop, not acquire again
	}
	if !alive { // the lease has run out, and no other goroutine has noticed yet
		h.EndSession()
		return nil, l.endedError()
	}
	if why := a.uncovered(h); why != nil {
		return nil, why
	}
	if !a.rejoins {
		return nil, ErrDeadlock
	}
	if h.Join(&a.request) {
		return a.lock, nil
	}
	if h.IsOver() {
		return nil, l.endedError()
	}
	return nil, errReaderWrites // the lock was downgraded just now
}

// carried returns a Lock that ctx carries, that belongs to the client, and that has
// one of the names wanted. It prefers one that is held to one that was lost, and returns
// nil if there is neither. Released locks do not count.
func carried(ctx context.Context, c *clientCore, wants []place.Want) *Lock {
	var lost *Lock
	for l := range carriedBy(ctx) {
		has := func(w place.Want) bool { return find(l.handle.hold, w.Path) >= 0 }
		if l.handle.client != c || !slices.ContainsFunc(wants, has) {
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

// uncovered returns why the request cannot join the hold: the hold lacks
// one of them, or has it in a mode that does not allow what is wanted. It returns nil if
// the request can join.
func (a *acquisition) uncovered(h *local.Hold) error {
	mode := h.Mode()
	var held []string
	for _, w := range a.request.Wants {
		i := find(h, w.Path)
		if i < 0 {
			continue
		}
		held = append(held, w.Name)
		switch have := h.Wants()[i].Kind; {
		case have.Permits != w.Kind.Permits:
			return errOtherKind
		case !mode.Covers(w.Kind.Mode) || !have.Mode.Covers(w.Kind.Mode):
			return errReaderWrites
		}
	}
	if len(held) < len(a.request.Wants) {
		return errs.Case(ErrDeadlock, fmt.Sprintf("the context already holds %s but not all names of this call, and waiting for the others meanwhile can end in a deadlock: release what it holds first, or acquire all of them together from the start", a.which(held)))
	}
	return nil
}

// find returns the index in the wants of a hold of the name with a path; -1 if the hold does not have it.
func find(h *local.Hold, path string) int {
	return slices.IndexFunc(h.Wants(), func(w place.Want) bool { return w.Path == path })
}
