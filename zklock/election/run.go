package election

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Run stands for election again and again, and calls lead, on the caller's goroutine, for
// each term. The context of lead carries the term's lock (see [zklock.FromContext]). It ends
// with ctx, and when the term ends, which is before another candidate can lead. lead has to
// return then. Run resigns only when lead has returned: no other candidate leads while lead
// works, unless the lock was lost. After that it pauses for about a second and stands again;
// pauses after terms of less than 30 seconds, and after candidacies that failed, double, up to
// 30 seconds. They do not double if the lock was lost, or if the ensemble could not be reached,
// unless that candidacy failed at once.
//
// Run returns:
//
//   - when ctx has ended, lead has returned, and the ensemble has confirmed that the candidate
//     resigned, or a session timeout has passed; with an error that matches that of ctx. Run does
//     not wait for a resignation that lead has made itself, nor for the removal of the node of a
//     candidate that only waited: close the client before the process ends, which does
//   - nil, if lead returned an error that matches [ErrStop]
//   - an error that matches [zklock.ErrClosed], [zklock.ErrInvalidName],
//     [zklock.ErrConflict], [zklock.ErrDeadlock] or [zklock.ErrTokenRegression], if the
//     candidacy fails with it: standing again would never help. Run notices within a second
//     that the client was closed during a pause.
//
// Nothing else ends it. Other errors of candidacies and of lead are logged. The loss of a
// term is logged by the client. If lead panics, Run resigns, and the panic goes on.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if e == nil {
		return e.failed("run", errNoElection)
	}
	if lead == nil {
		return e.failed("run", errNoLead)
	}
	for b := (backoff{}); ; {
		short, err := e.stand(ctx, lead)
		switch {
		case errors.Is(err, ErrStop):
			return nil
		case ctx.Err() != nil:
			return e.failed("run", errs.Ended(ctx))
		case err != nil:
			return err
		}
		rest(ctx, e.client, b.next(short))
	}
}

// stand is one candidacy, and the term that follows. Its error ends Run: ErrStop, or one
// that is final. short means that the next pause should be longer than the last.
func (e *Election) stand(ctx context.Context, lead func(context.Context, *Term) error) (short bool, err error) {
	stood := time.Now()
	t, err := e.Campaign(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || isFinal(err)):
		return false, err
	case err != nil:
		e.log().Warn("election: candidacy failed; the candidate stands again", "election", e.name, "error", err)
		// An outage ends by itself. A mistake in the settings does not, and fails at once.
		return !errors.Is(err, zklock.ErrUnavailable) || time.Since(stood) < firstPause, nil
	}
	began := time.Now()
	err = e.serve(ctx, t, lead)
	var lost *zklock.LostError
	errors.As(t.Err(), &lost)
	switch {
	case errors.Is(err, ErrStop):
		return false, ErrStop
	case lost != nil && errors.Is(lost.Cause, zklock.ErrClosed):
		return false, e.failed("run", zklock.ErrClosed)
	}
	return lost == nil && time.Since(began) < longTerm, nil
}

// serve calls lead for a term, and resigns when lead has returned or panicked, and not
// before. It returns the error of lead.
func (e *Election) serve(ctx context.Context, t *Term, lead func(context.Context, *Term) error) (err error) {
	// Release waits no longer than a session timeout. The client logs a release that is not
	// confirmed, and goes on with it in the background. It logs a loss, too.
	defer func() { _ = t.Release(context.WithoutCancel(ctx)) }()
	inner, cancel := t.Context(ctx)
	defer cancel()
	if inner.Err() != nil || !t.Valid() { // Valid: the process may have been stopped since the grant
		return nil // a candidate that can lead no more never leads
	}
	defer e.watchStuck(inner, t)()
	err = lead(inner, t)
	because := inner.Err() != nil && (errors.Is(err, inner.Err()) || errors.Is(err, context.Cause(inner)))
	if err != nil && !because && !errors.Is(err, ErrStop) {
		e.log().Warn("election: the leader's function failed; it resigns", "election", e.name, "token", t.Token(), "error", err)
	}
	return err
}

// watchStuck reports a leader that goes on for too long after its context has ended. The caller
// calls the function that it returns when the leader's function has returned. That function
// waits for watchStuck's goroutine.
func (e *Election) watchStuck(ctx context.Context, t *Term) (stop func()) {
	returned, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-returned:
			return
		case <-ctx.Done():
		}
		timer := time.NewTimer(e.stuckAfter)
		defer timer.Stop()
		select {
		case <-returned:
			return
		case <-timer.C:
		}
		e.log().Error("election: the leader's function has not returned after the end of its context", "election", e.name, "token", t.Token(), "after", e.stuckAfter, "held", t.Valid())
		if e.stuck != nil {
			e.stuck(t)
		}
	}()
	return func() { close(returned); <-done }
}
