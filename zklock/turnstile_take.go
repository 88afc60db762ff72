package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// take gets hold of what is wanted: it queues, waits for its turn, and starts
// over at the tail when its place is lost to no fault of its own. start, if not
// nil, is a place to begin with: one that waits in the queue already, left
// behind by somebody who gave up, or one that has to be replaced: because it was
// held already, or because it is a reader's and a writer is next.
//
// What it got is r.lock. If ctx ends while a place waits in the queue, take returns that
// place with the error, for somebody else to go on with. On any other error nothing stays
// queued.
func (t *turnstile) take(ctx context.Context, r *request, start *place.Place) (left *place.Place, err error) {
	r.lock = nil
	for {
		if r.Since.IsZero() {
			r.Since = time.Now()
		}
		patient, cancel := t.patientFor(ctx, r)
		s, err := t.all.pool.Session(patient, r.Wants[0].Path)
		if err == nil && context.Cause(patient) == errs.ErrCut && !s.CutSince().IsZero() {
			err = errs.WaitEnded(patient, errs.ErrUnavailable) // there is a session, without a connection
		}
		if err != nil {
			cancel()
			if start != nil {
				start.Remove()
			}
			return nil, r.outage(ctx, err)
		}
		d := place.DeskOf(s)
		if start != nil && start.Desk != d {
			if start.Granted.IsZero() && !start.Desk.IsOver() {
				d = start.Desk // it is being replaced, and the place is waiting its turn
			} else {
				start.Remove()
				start = nil
			}
		}
		left, err = place.Attempt{Desk: d, Request: &r.Request}.Take(ctx, patient, start)
		cancel()
		start = nil
		if errors.Is(err, errs.ErrUnanswered) {
			err = errs.WaitEnded(ctx, errs.ErrNotAcquired) // the session was there; what was waited for is the lock
		}
		if !errors.Is(err, errs.ErrSessionOver) && !errors.Is(err, errs.ErrNodeGone) {
			return left, r.outage(ctx, err)
		}
		if ctx.Err() != nil {
			return nil, errs.WaitEnded(ctx, errs.ErrNotAcquired)
		}
	}
}

// patientFor is session.Pool.Patient for a request, which may not want to wait for what the client
// has waited for before. Such a request waits almost as long as connect_timeout, so that
// its own wait of that length does not end first.
func (t *turnstile) patientFor(ctx context.Context, r *request) (context.Context, context.CancelFunc) {
	if !r.failFast {
		return t.all.pool.Patient(ctx, r.Since)
	}
	cut := t.all.pool.CutSince(r.Wants[0].Path)
	if cut.IsZero() || cut.After(r.Since) {
		cut = r.Since
	}
	return context.WithDeadlineCause(ctx, cut.Add(t.all.cfg.ConnectTimeout*19/20), errs.ErrCut)
}

// outage has the error of a request that wants to know of an outage say so: of one, and
// not of a server that answers late or refuses, nor of a wait that the request's own
// context has ended.
func (r *request) outage(ctx context.Context, err error) error {
	if !r.failFast || ctx.Err() != nil || !errors.Is(err, errs.ErrUnavailable) || session.Permanent(err) {
		return err
	}
	all := r.all
	// The moment at which a session was asked for is a little later than the request.
	if cut := all.pool.CutSince(r.Wants[0].Path); cut.IsZero() || time.Since(cut) < all.cfg.ConnectTimeout*9/10 {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutage, err)
}

// acquireAlone gets a request a place of its own, which is not handed over.
func (t *turnstile) acquireAlone(ctx context.Context, r *request) (*Lock, error) {
	r.turnstile = nil
	defer t.all.stepAside(r)()
	left, err := t.take(ctx, r, nil)
	if left != nil {
		left.Remove()
	}
	return r.lock, err
}
