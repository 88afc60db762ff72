package errs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors that package zklock exports, under the same names. An error has at most one parent,
// which it matches too: docs/guarantees.md draws the tree.
var (
	ErrNotAcquired    = errors.New("lock not acquired")
	ErrReleasePending = errors.New("release not confirmed yet, it goes on in the background")
	ErrClosed         = errors.New("client closed")
	ErrUnavailable    = errors.New("no usable ZooKeeper session")
	ErrTooManyWaiters = errors.New("too many waiters")
	ErrNoAuth         = errors.New("not authorized")
	ErrConflict       = errors.New("conflict")
	ErrInvalidName    = errors.New("invalid lock name")
	ErrLost           = errors.New("lock lost")
	ErrBadEnsemble    = errors.New("the ensemble is not as locks need it, and an operator has to act")
	ErrReleased       = errors.New("lock was released already")
	ErrUnknownOutcome = errors.New("outcome unknown: the operations may have been applied, or may still be applied")
	ErrDeadlock       = errors.New("the context already holds this lock, and waiting for it would never end: join it with Reenter, or acquire with Detach(ctx) in a goroutine that the holder does not wait for")
	ErrOutage         = Case(ErrUnavailable, "the ensemble cannot be reached")

	ErrBusy = Case(ErrTooManyWaiters, "the queue ahead is longer than the caller can wait")

	// Children of ErrBadEnsemble, which package zklock exports as its reasons only.
	ErrRootMissing     = Case(ErrBadEnsemble, "root does not exist, and create_root=false")
	ErrSessionTimeout  = Case(ErrBadEnsemble, "locks cannot work with the granted session timeout")
	ErrTokenRegression = Case(ErrBadEnsemble, "the ensemble's transaction ids went backwards, and fencing tokens would, too (was it restored from an older snapshot?): open a new Client when no holder from before is still at work")

	// Children of ErrLost.
	ErrLeaseOver      = Case(ErrLost, "lease ran out before a quorum renewed it")
	ErrSessionExpired = Case(ErrLost, "session expired")
	ErrNodeDeleted    = Case(ErrLost, "queue node was deleted by another client")
)

// Causes of a loss that are so rare that package zklock does not export them.
var (
	ErrShrunk       = Case(ErrLost, "the ensemble shortened the session timeout on a reconnect")
	ErrSessionEnded = Case(ErrLost, "session ended")

	// ErrTransactionsLost ends all sessions of a client that has found that the ensemble's
	// transaction ids went back.
	ErrTransactionsLost = Case(ErrLost, "the ensemble has lost transactions, so its queues may be wrong")

	// ErrSilent ends a session that proves no lease.
	ErrSilent = Case(ErrLeaseOver, "the ensemble did not answer for a session timeout")
)

// ErrSequenceExhausted means that ZooKeeper's sequence counter for a name is almost at its end. At
// the end ZooKeeper gives the same number to every node, and the queue would have no order.
var ErrSequenceExhausted = Case(ErrConflict, "the name's sequence numbers are used up: stop using the name until its container is removed, or remove its znode")

// ErrFull means that no session of the pool has room for a queue node.
var ErrFull = Case(ErrTooManyWaiters, "too many queue nodes")

// special is an error that matches a public error and has another text; see Case.
type special struct {
	of   error
	text string
}

// Error implements error.
func (e *special) Error() string { return e.text }

// Unwrap returns the public error that it matches.
func (e *special) Unwrap() error { return e.of }

// ErrUnanswered is the error of a request that a context ended while the session worked: the
// ensemble just had not answered yet. An acquisition returns ErrNotAcquired instead; see
// local.Queue.take.
var ErrUnanswered = Case(ErrUnavailable, "the ensemble had not answered yet")

// Errors inside zklock that make an acquisition start again, or that are the causes of
// contexts that zklock ends.
var (
	ErrSessionOver = errors.New("session is over")                       // the caller queues again on another session
	ErrNodeGone    = errors.New("own queue node disappeared")            // the caller queues again at the tail
	ErrNoRoom      = errors.New("session has no room for a queue node")  // the caller asks the pool again
	ErrWaitOver    = errors.New("the time given to WithWait has passed") // cause of the context that WithWait bounds
	ErrNoSession   = errors.New("connect_timeout has passed")            // cause set by session.Pool.Patient
	ErrCut         = errors.New("connect_timeout passed before")         // cause set by local.Queue.patientFor
	ErrTryOver     = errors.New("a try waits no longer for one")         // cause set by session.Pool.PatientTry and Session.PatientTry

	// Cause set by local.Queues.mustWait.
	ErrCrowded = fmt.Errorf("%w: as many goroutines of this client wait for the name as max_waiters or WithMaxWaiters allows", ErrTooManyWaiters)
)

// ErrTaken is the error of a caller that does not wait and finds the lock taken. It is also
// the cause of the context of a try that waits for a place to be recalled.
var ErrTaken = fmt.Errorf("%w: another contender holds it, or is ahead in its queue", ErrNotAcquired)

// WaitEnded returns the error of a wait that ctx ended. waitedFor is the error that says
// what the wait was for. The result matches waitedFor, and the context's error and cause.
// If zklock itself ended the context, the result does not match the context's error, which
// would seem to be the caller's: it matches ErrClosed, ErrTooManyWaiters, ErrUnavailable
// or, after WithWait, waitedFor.
func WaitEnded(ctx context.Context, waitedFor error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if v, ok := cause.(*Victim); ok {
		return fmt.Errorf("%w: %w", waitedFor, v.Err)
	}
	switch {
	case cause == ErrClosed:
		return ErrClosed
	case cause == ErrWaitOver:
		return fmt.Errorf("%w: %v", waitedFor, cause)
	case cause == ErrCrowded, cause == ErrTaken:
		return cause
	case cause == ErrNoSession, cause == ErrCut:
		return fmt.Errorf("%w for all of connect_timeout", ErrUnavailable)
	case cause == ErrTryOver:
		return fmt.Errorf("%w: %v", ErrUnavailable, cause)
	case cause == err || errors.Is(cause, err):
		return fmt.Errorf("%w: %w", waitedFor, cause)
	}
	return fmt.Errorf("%w: %w (%w)", waitedFor, err, cause)
}

// Ended returns why ctx, a caller's context, has ended: an error that matches the context's error
// and its cause.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w (%w)", err, cause)
}

// WhyEnded returns the reason for an operation that ended with err: if ctx has ended, the
// context's error and cause; ErrClosed alone if the client has ended it.
func WhyEnded(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case context.Cause(ctx) == ErrClosed:
		return ErrClosed
	}
	return Ended(ctx)
}

// Bounded returns the error of work under a lock. If bound has ended the work's context, and err says no more than that the
// context has ended, the result matches bound, too.
func Bounded(ctx context.Context, err, bound error) error {
	if context.Cause(ctx) != bound || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, bound) {
		return err
	}
	return fmt.Errorf("%w: %w", bound, err)
}

// LeaseUnproven returns the error of a caller that has waited for a lease in vain, although the
// session has a connection: no quorum has committed a write of its server.
func LeaseUnproven(d time.Duration) error {
	return fmt.Errorf("%w for %v: no quorum has committed enough to prove a lease", ErrUnavailable, d)
}

// ReleasePending returns the ErrReleasePending of a release that is not confirmed yet,
// because of why. It returns nil if why is nil. The result matches why only if that is a
// context's error: an error of zklock is in its text, since it is not a parent of ErrReleasePending.
func ReleasePending(why error) error {
	switch {
	case why == nil:
		return nil
	case errors.Is(why, context.Canceled), errors.Is(why, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrReleasePending, why)
	}
	return fmt.Errorf("%w: %v", ErrReleasePending, why)
}

// Case returns an error that matches err, a public error, and reads as text.
func Case(err error, text string) error { return &special{err, text} }

// Victim is the cause of the end of a wait's context that was in a circle of waits. It is not the error
// itself: that may be the cause of a caller's context, too.
type Victim struct{ Err error }

// Error implements error.
func (v *Victim) Error() string { return v.Err.Error() }

// Busy is ErrBusy with an estimate.
type Busy struct {
	Wait time.Duration // how long the wait would take
}

// Error implements error.
func (e *Busy) Error() string {
	return fmt.Sprintf("%v: the wait would take about %v", ErrBusy, e.Wait.Round(time.Millisecond))
}

// Unwrap returns ErrBusy.
func (e *Busy) Unwrap() error { return ErrBusy }
