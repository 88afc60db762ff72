package errs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors that package zklock gives to callers, by the same names.
var (
	ErrNotAcquired    = errors.New("lock not acquired")
	ErrReleasePending = errors.New("release not confirmed yet, it goes on in the background")
	ErrClosed         = errors.New("client closed")
	ErrUnavailable    = errors.New("no usable ZooKeeper session")
	ErrTooManyWaiters = errors.New("too many waiters")
	ErrNoAuth         = errors.New("not authorized")
	ErrLeaseOver      = errors.New("lease ran out before a quorum renewed it")
	ErrSessionExpired = errors.New("session expired")
	ErrNodeDeleted    = errors.New("queue node was deleted by somebody else")
	ErrConflict       = errors.New("conflict")
	ErrInvalidName    = errors.New("invalid lock name")

	ErrSequenceExhausted = errors.New("sequence numbers of this name are used up; let it go idle until its container is removed, or remove its znode")
	ErrTokenRegression   = errors.New("the ensemble's transaction ids ran backwards, fencing tokens would too (was it restored from an older snapshot?): open a new Client once no holder from before is at work")
)

// ErrRootMissing is matched by the error about a root that create_root=false forbids to
// make.
var ErrRootMissing = errors.New("root does not exist, and create_root=false")

// Causes of loss that are too rare to be told apart by programs.
var (
	ErrShrunk       = errors.New("the ensemble shortened the session timeout on a reconnect")
	ErrSessionEnded = errors.New("session ended")
)

// special is a case of a public error, which it matches, with a text of its own.
type special struct {
	of   error
	text string
}

// Error implements error.
func (e *special) Error() string { return e.text }

// Unwrap returns the error that it is a case of.
func (e *special) Unwrap() error { return e.of }

// ErrUnanswered is the error of a request that a context ended on a session that
// works. An acquisition makes ErrNotAcquired of it: see turnstile.take.
var ErrUnanswered = Case(ErrUnavailable, "the ensemble had not answered yet")

// Errors inside zklock that make an acquisition start over, or that say
// how its context ended.
var (
	ErrSessionOver = errors.New("session is over")                       // enqueue anew on another one
	ErrNodeGone    = errors.New("own queue node disappeared")            // enqueue anew at the tail
	ErrWaitOver    = errors.New("the time given to WithWait has passed") // cause of the context
	ErrNoSession   = errors.New("connect_timeout has passed")            // cause set by session.Pool.Patient
	ErrCut         = errors.New("connect_timeout passed before")         // cause set by turnstile.patientFor

	// Cause set by turnstiles.mustWait.
	ErrCrowded = fmt.Errorf("%w: as many of this client wait for the name as max_waiters or WithMaxWaiters allows", ErrTooManyWaiters)
)

// ErrTaken is the error of who does not wait.
var ErrTaken = fmt.Errorf("%w: others hold it, or are ahead in its queue", ErrNotAcquired)

// WaitEnded is the error of a wait that ctx ended. It matches waitedFor, which
// says what was waited for, and the context's error and cause, unless it was
// zklock that ended the context.
func WaitEnded(ctx context.Context, waitedFor error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case cause == ErrClosed:
		return ErrClosed
	case cause == ErrWaitOver:
		return fmt.Errorf("%w: %v", waitedFor, cause)
	case cause == ErrCrowded:
		return ErrCrowded
	case cause == ErrNoSession, cause == ErrCut:
		return fmt.Errorf("%w for all of connect_timeout", ErrUnavailable)
	case cause == err || errors.Is(cause, err):
		return fmt.Errorf("%w: %w", waitedFor, cause)
	}
	return fmt.Errorf("%w: %w (%w)", waitedFor, err, cause)
}

// LeaseUnproven says that a session was there and no quorum behind it.
func LeaseUnproven(d time.Duration) error {
	return fmt.Errorf("%w for %v: no quorum has committed enough to prove a lease", ErrUnavailable, d)
}

// ReleasePending is the ErrReleasePending of a release that something kept from
// being confirmed; nil if nothing did.
func ReleasePending(why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrReleasePending, why)
}

// Case returns a case of a public error, with a text of its own.
func Case(err error, text string) error { return &special{err, text} }
