package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// reenter checks whether ctx carries a lock on a name that r wants. The caller would
// wait for itself, so that fails. If the caller gave Reenter, and the carried lock
// covers all names and modes that r wants, the request joins the lock instead.
// reenter returns nil and nil if ctx carries no such lock.
//
// Another goroutine may release the carried lock at any moment. If the handle turns
// out to be released, reenter looks again.
func (c *Client) reenter(ctx context.Context, r *request, join bool) (*Lock, error) {
	for {
		l := carried(ctx, r.turnstiles, r.Wants)
		if l == nil {
			return nil, nil
		}
		joined, err := l.rejoin(r, join)
		if err == nil || l.Err() != ErrReleased {
			return joined, err
		}
	}
}

// rejoin is reenter for the lock that it found.
func (l *Lock) rejoin(r *request, join bool) (*Lock, error) {
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
	if !join {
		return nil, ErrDeadlock
	}
	joined, ok := h.joinAs(r)
	switch {
	case !ok:
		return nil, errReaderWrites // the lock was downgraded just now
	case joined == nil:
		return nil, l.endedError()
	}
	return joined, nil
}
