package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// reenter looks whether ctx carries a lock on something that r wants. Waiting
// for it would be waiting for oneself: that is refused, or, where the caller
// asked for it and what is held covers all that is wanted, joined. It returns
// nil and nil if ctx carries nothing of the kind.
//
// Another goroutine may release what ctx carries at any moment. A handle that is
// released by the time of the answer does not count, whatever was seen of it
// before.
func (c *Client) reenter(ctx context.Context, r *request, join bool) (*Lock, error) {
	for {
		l := carried(ctx, r.all, r.Wants)
		if l == nil {
			return nil, nil
		}
		joined, err := l.rejoin(r, join)
		if err == nil || l.Err() != ErrReleased {
			return joined, err
		}
	}
}

// rejoin is reenter for the handle that was found.
func (l *Lock) rejoin(r *request, join bool) (*Lock, error) {
	h := l.hold
	alive := h.place.Desk.Alive()
	if err := l.Err(); err != nil {
		return nil, err // if it was lost, the caller should stop, not start over
	}
	if !alive { // the lease is over, and no goroutine has noticed yet
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
		return nil, errReaderWrites // it was downgraded just now
	case joined == nil:
		return nil, l.endedError()
	}
	return joined, nil
}
