package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// take gets hold of what is wanted: it queues, waits for its turn, and starts
// over at the tail when its place is lost to no fault of its own. start, if not
// nil, is a place to begin with: one that waits in the queue already, left
// behind by somebody who gave up, or one that has to be replaced: because it was
// held already, or because it is a reader's and a writer is next.
//
// If ctx ends while a place waits in the queue, take returns that place with the
// error, for somebody else to go on with. On any other error nothing stays
// queued.
func (c *Client) take(ctx context.Context, r *request, start *place) (h *hold, lock *Lock, left *place, err error) {
	for {
		if r.since.IsZero() {
			r.since = time.Now()
		}
		patient, cancel := c.patientFor(ctx, r)
		s, err := c.pool.session(patient, r.wants[0].path)
		if err == nil && context.Cause(patient) == errCut && !s.cutSince().IsZero() {
			err = waitEnded(patient, ErrUnavailable) // there is a session, without a connection
		}
		if err != nil {
			cancel()
			if start != nil {
				start.remove()
			}
			return nil, nil, nil, r.outage(ctx, err)
		}
		if start != nil && start.s != s {
			if start.granted.IsZero() && !start.s.isOver() {
				s = start.s // it is being replaced, and the place is waiting its turn
			} else {
				start.remove()
				start = nil
			}
		}
		h, lock, left, err = s.take(ctx, patient, r, start)
		cancel()
		start = nil
		if errors.Is(err, errUnanswered) {
			err = waitEnded(ctx, ErrNotAcquired) // the session was there; what was waited for is the lock
		}
		if !errors.Is(err, errSessionOver) && !errors.Is(err, errNodeGone) {
			return h, lock, left, r.outage(ctx, err)
		}
		if ctx.Err() != nil {
			return nil, nil, nil, waitEnded(ctx, ErrNotAcquired)
		}
	}
}

// patientFor is patient for a request, which may not want to wait for what the client
// has waited for before. Such a request waits almost as long as connect_timeout, so that
// its own wait of that length does not end first.
func (c *Client) patientFor(ctx context.Context, r *request) (context.Context, context.CancelFunc) {
	if !r.failFast {
		return c.patient(ctx, r.since)
	}
	cut := c.pool.cutSince(r.wants[0].path)
	if cut.IsZero() || cut.After(r.since) {
		cut = r.since
	}
	return context.WithDeadlineCause(ctx, cut.Add(c.cfg.connectTimeout*19/20), errCut)
}

// outage has the error of a request that wants to know of an outage say so: of one, and
// not of a server that answers late or refuses, nor of a wait that the request's own
// context has ended.
func (r *request) outage(ctx context.Context, err error) error {
	if !r.failFast || ctx.Err() != nil || !errors.Is(err, ErrUnavailable) || permanent(err) {
		return err
	}
	c := r.client
	// The moment at which a session was asked for is a little later than the request.
	if cut := c.pool.cutSince(r.wants[0].path); cut.IsZero() || time.Since(cut) < c.cfg.connectTimeout*9/10 {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutage, err)
}

// take is one attempt on one session. Until there is a place in the queue, which
// only a session that works can give, it goes on for as long as patient does.
func (s *session) take(ctx, patient context.Context, r *request, p *place) (h *hold, lock *Lock, left *place, err error) {
	alone := false
	if p == nil || !p.granted.IsZero() && !p.kept || p.readers() && r.mode != queue.Shared {
		if r.try {
			if err := s.blocked(patient, r); err != nil {
				return nil, nil, nil, err
			}
		}
		if p, alone, err = s.enqueue(patient, r, p); err != nil {
			return nil, nil, nil, err
		}
	}
	if p.kept {
		p.kept = false
		p.handovers++
	}
	r.since = time.Time{}
	if r.mode == queue.Shared {
		p.admitReaders(r.origin)
	}
	for {
		if !alone {
			if err = s.awaitTurn(ctx, r, p); err != nil {
				break
			}
		}
		if h, lock = s.grant(p, r); h != nil {
			if r.mode == queue.Permit && p.own != nil {
				// It waited, so that a contender may wait behind it, and is the first in line
				// now. The change of our data says so. It is tried until it is done, or
				// the node is gone, which says as much.
				marked := r.nodeData()
				marked.Granted = true
				s.spawn(func() { _ = s.rewrite(p, marked) })
			}
			return h, lock, nil, nil
		}
		alone = false // something had to be waited for, if only a longer lease
	}
	if errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		r.since = time.Now().Add(-s.client.cfg.connectTimeout)
	}
	if ctx.Err() == nil || errors.Is(err, errNodeGone) {
		p.remove()
		return nil, nil, nil, err
	}
	return nil, nil, p, err
}

// awaitTurn returns when it is the place's turn and the lease is long enough to
// say so to the caller.
//
// A grant needs, in this order, nobody ahead on any name; a lease of a good
// length; and the sight of our own nodes, owned by our session, on the connection
// on which nobody was seen ahead: an operator may have deleted one meanwhile, and
// two waiters must never both get in. If one of them had to wait, the others are
// looked at again. The last look at the lease is grant's, in one step with
// becoming a hold.
func (s *session) awaitTurn(ctx context.Context, r *request, p *place) error {
	for {
		gen, err := s.awaitFront(ctx, r, p)
		if err != nil {
			return err
		}
		if left, _ := s.left(); left < s.lease.Least() {
			if err := s.awaitLease(ctx); err != nil {
				return err
			}
			continue
		}
		if seen, err := s.seeOwn(ctx, p); err != nil || seen == gen && gen != 0 {
			return err
		}
	}
}
