package election

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Run stands for election again and again, and calls lead, on the caller's goroutine, for
// each term. The context of lead carries the term's lock (see [zklock.FromContext]). It ends
// with ctx, and when the term ends, which is before another candidate can lead. lead must
// return then. Run resigns only when lead has returned: while lead works, another candidate
// leads only if the lock was lost. After that Run pauses for about a second and stands again.
// Pauses double, up to 30 seconds, after terms of less than 30 seconds and after candidacies
// that failed. After a lost lock, and while the ensemble cannot be reached, they double only if
// the candidacy failed at once.
//
// Run returns:
//
//   - an error that matches that of ctx, if ctx has ended and lead has returned. Run first
//     waits for the ensemble's confirmation that the candidate has resigned, for a session timeout
//     at most. It does not wait if lead has resigned itself. If the candidate did not lead but
//     waited, Run does not wait for the removal of its node. [zklock.Client.Close] waits for that:
//     call it before the process ends
//   - nil, if lead returned an error that matches [ErrStop]
//   - an error that matches [zklock.ErrClosed], [zklock.ErrInvalidName],
//     [zklock.ErrConflict], [zklock.ErrMisuse], [zklock.ErrDeadlock], or
//     [zklock.ErrBadEnsemble] with the reason token_regression, if the candidacy fails with it:
//     standing again would never help. After a conflict with another program's ephemeral znode
//     ([driver.ErrNoChildrenForEphemerals]) it helps, so that does not end Run. Run notices within
//     a second that the client was closed during a pause.
//
// Nothing else ends it. Run waits no longer than a second for its log when it returns, and never before. It logs other errors of candidacies and of lead. The client logs the
// loss of a term. If lead panics, Run resigns, and the panic goes on.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if e == nil {
		return e.failed("run", errNoElection)
	}
	if lead == nil {
		return e.failed("run", errNoLead)
	}
	c := &candidate{Election: e}
	defer c.lines.Flush(backlog.Patience)
	for b := (backoff{}); ; {
		short, err := c.stand(ctx, lead)
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

// candidate is one call of Run. Its lines of the log have a goroutine of their own, since a term ends late, and
// no other candidate leads, while Run waits.
type candidate struct {
	*Election
	lines backlog.Queue
}

// log returns the logger of Run, which never waits.
func (c *candidate) log() *slog.Logger { return c.lines.Logger(c.logger) }

// stand is one candidacy, and the term that follows. Its error ends Run: ErrStop, or one
// that is final. short means that the next pause should be longer than the last.
func (c *candidate) stand(ctx context.Context, lead func(context.Context, *Term) error) (short bool, err error) {
	stood := time.Now()
	t, err := c.Campaign(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || isFinal(err)):
		return false, err
	case err != nil:
		c.log().Warn("election: candidacy failed; the candidate stands again", "election", c.name, "error", err)
		// An outage ends by itself. A mistake in the settings does not, and fails at once.
		return !errors.Is(err, zklock.ErrUnavailable) || time.Since(stood) < firstPause, nil
	}
	began := time.Now()
	err = c.serve(ctx, t, lead)
	var lost *zklock.LostError
	errors.As(t.Err(), &lost)
	switch {
	case errors.Is(err, ErrStop):
		return false, ErrStop
	case lost != nil && errors.Is(lost.Cause, zklock.ErrClosed):
		return false, c.failed("run", zklock.ErrClosed)
	}
	return lost == nil && time.Since(began) < longTerm, nil
}

// serve calls lead for a term, and resigns when lead has returned or panicked, and not
// before. It returns the error of lead.
func (c *candidate) serve(ctx context.Context, t *Term, lead func(context.Context, *Term) error) (err error) {
	// Release waits no longer than a session timeout. The client logs a release that is not
	// confirmed, and goes on with it in the background. It logs a loss, too.
	watched := func() {}
	defer func() {
		_ = t.Release(context.WithoutCancel(ctx))
		watched() // after that: the function of WithStuck may take long
	}()
	inner, cancel := t.Context(ctx)
	defer cancel()
	if inner.Err() != nil || !t.Valid() { // Valid: the process may have been stopped since the grant
		return nil // a candidate that can lead no more never leads
	}
	returned, done := c.watchStuck(inner, t)
	watched = done
	defer returned()
	err = lead(inner, t)
	because := inner.Err() != nil && (errors.Is(err, inner.Err()) || errors.Is(err, context.Cause(inner)))
	if err != nil && !because && !errors.Is(err, ErrStop) {
		c.log().Warn("election: the leader's function failed; it resigns", "election", c.name, "token", t.Token(), "error", err)
	}
	return err
}

// watchStuck reports a leader that goes on for too long after its context has ended. The caller calls stop when the
// leader's function has returned. wait waits for watchStuck's goroutine.
func (c *candidate) watchStuck(ctx context.Context, t *Term) (stop, wait func()) {
	returned, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-returned:
			return
		case <-ctx.Done():
		}
		timer := time.NewTimer(c.stuckAfter)
		defer timer.Stop()
		select {
		case <-returned:
			return
		case <-timer.C:
		}
		c.log().Error("election: the leader's function has not returned after the end of its context", "election", c.name, "token", t.Token(), "after", c.stuckAfter, "held", t.Valid())
		if c.stuck != nil {
			c.stuck(t)
		}
	}()
	return func() { close(returned) }, func() { <-done }
}
