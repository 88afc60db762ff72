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

// take acquires what r wants, and sets r.lock. It takes a place in ZooKeeper's queue and waits for
// its turn. If the place is lost before that, because its session has ended or another program has
// deleted a node, take begins again at the end of the queue.
//
// start, if not nil, is a place to begin with. It may wait in the queue already, left by a
// goroutine that stopped waiting. Or it has to be replaced, because it was held before, or
// because it is a reader's and r is a writer.
//
// If the request's context ends while a place waits in the queue, take returns that place with the error,
// for another goroutine to continue with. After any other error nothing stays queued.
func (t *turnstile) take(r *request, start *place.Place) (left *place.Place, err error) {
	ctx := r.context()
	r.lock = nil
	for {
		if r.NoSessionSince.IsZero() {
			r.NoSessionSince = time.Now()
		}
		s, patient, cancel, err := t.session(ctx, r)
		if err != nil {
			cancel()
			if start != nil {
				start.Remove()
			}
			return nil, r.outage(ctx, err)
		}
		on := s
		if start != nil && start.Desk != on.Desk {
			if start.Granted.IsZero() && !start.Desk.IsOver() {
				on = start.Session() // the session is being replaced; the place still waits for its turn on it
			} else {
				start.Remove()
				start = nil
			}
		}
		if r.turnstile != nil {
			t.leaderAsks(on.Desk)
		}
		left, err = place.Attempt{Session: on, Request: &r.Request}.Take(ctx, patient, cancel, start)
		start = nil
		if errors.Is(err, errs.ErrUnanswered) && s.CutSince().IsZero() {
			err = errs.WaitEnded(ctx, errs.ErrNotAcquired) // there was a connection, so the wait was one for the lock
		}
		if r.Try && errors.Is(err, errs.ErrUnavailable) {
			err = withoutConnection(err, s.CutSince())
		}
		if !errors.Is(err, errs.ErrSessionOver) && !errors.Is(err, errs.ErrNodeGone) {
			return left, r.outage(ctx, err)
		}
		if ctx.Err() != nil {
			return nil, errs.WaitEnded(ctx, errs.ErrNotAcquired)
		}
	}
}

// session returns a session for a request, and the context that bounds how long the request goes on
// without a place in the queue. In an outage that has lasted for longer than the request's limit, it
// fails at once.
func (t *turnstile) session(ctx context.Context, r *request) (s *place.Session, patient context.Context, cancel context.CancelFunc, err error) {
	path := r.Wants[0].Path
	for again := true; ; again = false {
		patient, cancel = t.patientFor(ctx, r)
		s, err = t.turnstiles.pool.Session(patient, path)
		if cause := context.Cause(patient); err != nil || cause != errs.ErrCut && cause != errs.ErrTryOver {
			return s, patient, cancel, err
		}
		if cut := s.CutSince(); !cut.IsZero() || !again {
			return nil, patient, cancel, withoutConnection(t.turnstiles.pool.Outage(patient), cut)
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

// patientFor is session.Pool.Patient for a request. A try has the limit of session.Pool.PatientTry. If
// another request has WithFailFast, there are two differences. Time without a connection before
// the request counts too. And the limit is a little less than connect_timeout, so that the request
// fails before a wait of connect_timeout ends.
func (t *turnstile) patientFor(ctx context.Context, r *request) (context.Context, context.CancelFunc) {
	switch {
	case r.Try:
		return t.turnstiles.pool.PatientTry(ctx, r.Wants[0].Path, r.NoSessionSince)
	case !r.failFast:
		return t.turnstiles.pool.Patient(ctx, r.NoSessionSince)
	}
	cut := t.turnstiles.pool.CutSince(r.Wants[0].Path)
	if cut.IsZero() || cut.After(r.NoSessionSince) {
		cut = r.NoSessionSince
	}
	return context.WithDeadlineCause(ctx, cut.Add(t.turnstiles.cfg.ConnectTimeout*19/20), errs.ErrCut)
}

// outage adds ErrOutage to the error of a request with WithFailFast, if it failed because
// of an outage. It does not if a server answered late or refused the request, or if the
// request's own context ended.
func (r *request) outage(ctx context.Context, err error) error {
	if !r.failFast || ctx.Err() != nil || !errors.Is(err, errs.ErrUnavailable) || session.Permanent(err) {
		return err
	}
	// The limit is lower than patientFor's, because the pool notes the start of an outage
	// a little later than the request does.
	if cut := r.turnstiles.pool.CutSince(r.Wants[0].Path); cut.IsZero() || time.Since(cut) < r.turnstiles.cfg.ConnectTimeout*9/10 {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutage, err)
}

// acquireAlone acquires a lock with a separate place, which is not handed over.
func (t *turnstile) acquireAlone(r *request) (*Lock, error) {
	r.turnstile = nil
	r.Keep = false
	t.turnstiles.makeWay(r, 1)
	defer t.turnstiles.makeWay(r, -1)
	left, err := t.take(r, nil)
	if left != nil {
		left.Remove()
	}
	return r.lock, err
}

// await waits for a ticket's answer. If the request's context ends first, it takes the ticket out of
// the queue.
func (t *turnstile) await(tk *ticket) error {
	select {
	case <-tk.answered:
		if tk.refused {
			return errs.ErrTaken
		}
		return nil
	default:
	}
	ctx := tk.r.context()
	if tk.r.Try {
		return t.awaitTry(ctx, tk)
	}
	for leaderWaits := tk.leaderWaits; ; leaderWaits = nil {
		if leaderWaits == nil {
			t.mu.Lock()
			position, ahead := t.aheadLocked()
			t.mu.Unlock()
			tk.r.reportWait(position, ahead)
		}
		select {
		case <-tk.answered:
			return nil
		case <-leaderWaits:
		case <-ctx.Done():
			err := t.waitEnded(ctx, tk)
			t.leave(tk)
			return err
		}
	}
}

// leaderWaitsLocked decides whether a reader that enters the queue already waits for other
// contenders. It does not if the leader is a reader that is asking the ensemble for a place, and
// all tickets between the two are readers' too: they will join the leader's hold. In this case
// leaderWaitsLocked returns a channel, which is closed if the leader has to wait for other
// contenders; then the readers behind it wait too. Otherwise it returns nil.
func (t *turnstile) leaderWaitsLocked(r *request) <-chan struct{} {
	if r.Try || !r.Mode.Joins() || t.leader == nil || !t.leader.r.Mode.Joins() || t.leader.waits || !t.sharedLocked() {
		return nil
	}
	last := t.queue.Back()
	for last != nil && last.Value.(*ticket).r.Try {
		last = last.Prev() // it does not wait: if there is anything to wait for, it leaves
	}
	if last != nil && (t.leaderWaits == nil || last.Value.(*ticket).leaderWaits != t.leaderWaits) {
		return nil
	}
	if t.leaderWaits == nil {
		t.leaderWaits = make(chan struct{})
	}
	return t.leaderWaits
}

// leaderMeets is called when the leader has found another contender in ZooKeeper's queue. The tries
// behind the leader fail, without a request of their own. If the leader waits for that contender,
// because it is not a try itself, leaderMeets notifies the readers that ask together with the leader:
// see leaderWaitsLocked.
func (t *turnstile) leaderMeets(waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leader.met = true
	t.refuseTriesLocked()
	if t.leader.waits = waits; waits && t.leaderWaits != nil {
		close(t.leaderWaits)
		t.leaderWaits = nil
	}
}
