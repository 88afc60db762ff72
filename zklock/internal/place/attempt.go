package place

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Attempt is a request's try to get what it wants on one session.
type Attempt struct {
	Desk    *Desk
	Request *Request
}

// Take is one attempt on one session. Until there is a place in the queue, which
// only a session that works can give, it goes on for as long as patient does.
//
// If it succeeds the requester has begun a hold. If ctx ends while a place waits in the
// queue, that is returned with the error, for somebody else to go on with. On any other
// error nothing stays queued.
func (a Attempt) Take(ctx, patient context.Context, p *Place) (left *Place, err error) {
	s, r := a.Desk, a.Request
	alone := false
	if p == nil || p.worn() || p.Readers() && r.Mode != queue.Shared {
		if r.Try {
			if err := a.blocked(patient); err != nil {
				return nil, err
			}
		}
		if p, alone, err = a.enqueue(patient, p); err != nil {
			return nil, err
		}
	}
	p.move(resumed) // if it was reserved, then for this one
	r.Since = time.Time{}
	if r.Mode == queue.Shared {
		p.BecomeShared(r.Origin)
	}
	for {
		if !alone {
			if err = a.awaitTurn(ctx, p); err != nil {
				break
			}
		}
		if p.Grant(r.By) {
			if r.Mode == queue.Permit && p.own != nil {
				// It waited, so that a contender may wait behind it, and is the first in line
				// now. The change of our data says so. It is tried until it is done, or
				// the node is gone, which says as much.
				marked := r.nodeData(s.Shared)
				marked.Granted = true
				granted := p // what a closure refers to is on the heap, and p would be each time
				s.Spawn(func() { _ = granted.Rewrite(marked) })
			}
			return nil, nil
		}
		alone = false // something had to be waited for, if only a longer lease
	}
	if errors.Is(err, errs.ErrUnavailable) && ctx.Err() == nil {
		r.Since = time.Now().Add(-s.cfg.ConnectTimeout)
	}
	if ctx.Err() == nil || errors.Is(err, errs.ErrNodeGone) {
		p.Remove()
		return nil, err
	}
	return p, err
}

// awaitTurn returns when it is the place's turn and the lease is long enough to
// say so to the caller.
//
// A grant needs, in this order, nobody ahead on any name; a lease of a good
// length; and the sight of our own nodes, owned by our session, on the connection
// on which nobody was seen ahead: an operator may have deleted one meanwhile, and
// two waiters must never both get in. If one of them had to wait, the others are
// looked at again. The last look at the lease is Place.Grant's, in one step with
// becoming a hold.
func (a Attempt) awaitTurn(ctx context.Context, p *Place) error {
	s := a.Desk
	mine := ownNodes{p}
	for {
		gen, err := a.awaitFront(ctx, p)
		if err != nil {
			return err
		}
		if left, _ := s.Left(); left < s.Lease.Least() {
			if err := s.AwaitLease(ctx); err != nil {
				return err
			}
			continue
		}
		if seen, err := mine.see(ctx); err != nil || seen == gen && gen != 0 {
			return err
		}
	}
}
