package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// take acquires what r wants, and sets r.got. It takes a place in ZooKeeper's queue and waits for
// its turn. If the place is lost before that, because its session has ended or another program has
// deleted a node, take begins again at the end of the queue.
//
// start, if not nil, is a place to begin with. It may wait in the queue already, left by a
// goroutine that stopped waiting. Or it has to be replaced, because it was held before, or
// because it is a reader's and r is a writer.
//
// If the request's context ends while a place waits in the queue, take returns that place with the error,
// for another goroutine to continue with. After any other error nothing stays queued.
func (q *Queue) take(r *Request, start *place.Place) (left *place.Place, err error) {
	ctx := q.queues.contextOf(r)
	r.got = nil
	for {
		if r.NoSessionSince.IsZero() {
			r.NoSessionSince = time.Now()
		}
		s, patient, cancel, err := q.session(ctx, r, start)
		if errors.Is(err, errs.ErrNoRoom) { // the servers are asked what they read: not an outage
			cancel()
			r.NoSessionSince = s.Session.UsableAt()
			continue
		}
		if err != nil {
			cancel()
			if start != nil {
				start.Remove()
			}
			return nil, q.outage(ctx, r, err)
		}
		on := s
		if start != nil && start.Desk != on.Desk {
			if start.Granted.IsZero() && !start.Desk.Session.IsOver() {
				on = start.Session() // the session is being replaced; the place still waits for its turn on it
			} else {
				start.Remove()
				start = nil
			}
		}
		if !r.apart {
			q.leaderAsks(on.Desk)
		}
		left, err = place.Attempt{Session: on, Claim: &r.Claim, By: (*claimant)(r)}.Take(ctx, patient, cancel, start)
		start = nil
		if errors.Is(err, errs.ErrUnanswered) && s.Session.CutSince().IsZero() {
			err = errs.WaitEnded(ctx, errs.ErrNotAcquired) // there was a connection, so the wait was one for the lock
		}
		if r.Try && errors.Is(err, errs.ErrUnavailable) {
			err = withoutConnection(err, s.Session.CutSince())
		}
		if !errors.Is(err, errs.ErrSessionOver) && !errors.Is(err, errs.ErrNodeGone) && !errors.Is(err, errs.ErrNoRoom) {
			return left, q.outage(ctx, r, err)
		}
		if ctx.Err() != nil {
			return nil, errs.WaitEnded(ctx, errs.ErrNotAcquired)
		}
	}
}

// pooled returns the pool's session for a request. If all sessions are full, the place that the request begins
// with makes room for a new one on its own session. Otherwise the client gives up names that it keeps.
func (q *Queue) pooled(patient context.Context, r *Request, start *place.Place) (*place.WatchedDesk, error) {
	for {
		s, err := q.queues.pool.Session(patient, r.Wants[0].Path, q.queues.bytes(r))
		switch {
		case !errors.Is(err, errs.ErrFull):
			return s, err
		case start != nil && !start.Desk.Session.IsOver():
			return start.Session(), nil
		case !q.queues.makeRoom(patient):
			return s, err
		}
	}
}

// bytes returns how many bytes the nodes of a request take in the transaction that ends their session.
func (qs *Queues) bytes(r *Request) int { return place.Ephemerals(qs.cfg.Place.Dialect, r.Wants) }

// session returns a session for a request, and the context that bounds how long the request goes on
// without a place in the queue. In an outage that has lasted for longer than the request's limit, it
// fails at once.
func (q *Queue) session(ctx context.Context, r *Request, start *place.Place) (s *place.WatchedDesk, patient context.Context, cancel context.CancelFunc, err error) {
	for again := true; ; again = false {
		patient, cancel = q.patientFor(ctx, r)
		s, err = q.pooled(patient, r, start)
		if cause := context.Cause(patient); err != nil || cause != errs.ErrCut && cause != errs.ErrTryOver {
			return s, patient, cancel, err
		}
		if cut := s.Session.CutSince(); !cut.IsZero() || !again {
			return nil, patient, cancel, withoutConnection(q.queues.pool.Outage(patient), cut)
		}
		cancel() // the connection has just come back: the outage before it does not count any more
	}
}

// withoutConnection adds to an error since when the session has had no connection. cut is zero if it
// has one.
func withoutConnection(err error, cut time.Time) error {
	if cut.IsZero() {
		return err
	}
	return fmt.Errorf("%w (the connection was lost %v ago)", err, time.Since(cut).Round(time.Millisecond))
}

// unavailable implements gateClient.
func (qs *Queues) unavailable(ctx context.Context, path string) error {
	s, err := qs.pool.Session(ctx, path, 0)
	if err != nil {
		return err
	}
	if cut := s.Session.CutSince(); !cut.IsZero() {
		return withoutConnection(errs.WaitEnded(ctx, errs.ErrUnavailable), cut)
	}
	return nil
}

// patientFor is session.Pool.Patient for a request. A try has the limit of session.Pool.PatientTry. If
// another request has WithFailFast, there are two differences. Time without a connection before
// the request counts too. And the limit is a little less than connect_timeout, so that the request
// fails before a wait of connect_timeout ends.
func (q *Queue) patientFor(ctx context.Context, r *Request) (context.Context, context.CancelFunc) {
	switch {
	case r.Try:
		return q.queues.pool.PatientTry(ctx, r.Wants[0].Path, q.queues.bytes(r), r.NoSessionSince)
	case !r.FailFast:
		return q.queues.pool.Patient(ctx, r.NoSessionSince)
	}
	cut := q.queues.pool.CutSince(r.Wants[0].Path, q.queues.bytes(r))
	if cut.IsZero() || cut.After(r.NoSessionSince) {
		cut = r.NoSessionSince
	}
	return context.WithDeadlineCause(ctx, cut.Add(q.queues.cfg.Place.ConnectTimeout*19/20), errs.ErrCut)
}

// outage adds ErrOutage to the error of a request with WithFailFast, if it failed because
// of an outage. It does not if a server answered late or refused the request, or if the
// request's own context ended.
func (q *Queue) outage(ctx context.Context, r *Request, err error) error {
	if !r.FailFast || ctx.Err() != nil || !errors.Is(err, errs.ErrUnavailable) || session.Permanent(err) {
		return err
	}
	// The limit is lower than patientFor's, because the pool notes the start of an outage
	// a little later than the request does.
	if cut := q.queues.pool.CutSince(r.Wants[0].Path, q.queues.bytes(r)); cut.IsZero() || time.Since(cut) < q.queues.cfg.Place.ConnectTimeout*9/10 {
		return err
	}
	return fmt.Errorf("%w: %w", errs.ErrOutage, err)
}
