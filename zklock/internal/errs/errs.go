package errs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors that package zklock gives to callers, by the same names with Err before
// them, which say what each means.
var (
	NotAcquired    = errors.New("lock not acquired")
	ReleasePending = errors.New("release not confirmed yet, it goes on in the background")
	Closed         = errors.New("client closed")
	Unavailable    = errors.New("no usable ZooKeeper session")
	TooManyWaiters = errors.New("too many waiters")
	NoAuth         = errors.New("not authorized")
	LeaseOver      = errors.New("lease ran out before a quorum renewed it")
	SessionExpired = errors.New("session expired")
	NodeDeleted    = errors.New("queue node was deleted by somebody else")
	Conflict       = errors.New("conflict")
	InvalidName    = errors.New("invalid lock name")
)

// RootMissing is matched by the error about a root that create_root=false forbids to
// make.
var RootMissing = errors.New("root does not exist, and create_root=false")

// Causes of loss that are too rare to be told apart by programs.
var (
	Shrunk       = errors.New("the ensemble shortened the session timeout on a reconnect")
	SessionEnded = errors.New("session ended")
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

// Unanswered is the error of a request that a context ended on a session that
// works. An acquisition makes ErrNotAcquired of it: see turnstiles.take.
var Unanswered = Case(Unavailable, "the ensemble had not answered yet")

// Errors inside zklock that make an acquisition start over, or that say
// how its context ended.
var (
	SessionOver = errors.New("session is over")                       // enqueue anew on another one
	NodeGone    = errors.New("own queue node disappeared")            // enqueue anew at the tail
	WaitOver    = errors.New("the time given to WithWait has passed") // cause of the context
	NoSession   = errors.New("connect_timeout has passed")            // cause set by pool.patient
	Cut         = errors.New("connect_timeout passed before")         // cause set by pool.patient

	// Cause set by turnstiles.mustWait.
	Crowded = fmt.Errorf("%w: as many of this client wait for the name as max_waiters or WithMaxWaiters allows", TooManyWaiters)
)

// Taken is the error of who does not wait.
var Taken = fmt.Errorf("%w: others hold it, or are ahead in its queue", NotAcquired)

// WaitEnded is the error of a wait that ctx ended. It matches waitedFor, which
// says what was waited for, and the context's error and cause, unless it was
// this package that ended the context.
func WaitEnded(ctx context.Context, waitedFor error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case cause == Closed:
		return Closed
	case cause == WaitOver:
		return fmt.Errorf("%w: %v", waitedFor, cause)
	case cause == Crowded:
		return Crowded
	case cause == NoSession, cause == Cut:
		return fmt.Errorf("%w for all of connect_timeout", Unavailable)
	case cause == err || errors.Is(cause, err):
		return fmt.Errorf("%w: %w", waitedFor, cause)
	}
	return fmt.Errorf("%w: %w (%w)", waitedFor, err, cause)
}

// LeaseUnproven says that a session was there and no quorum behind it.
func LeaseUnproven(d time.Duration) error {
	return fmt.Errorf("%w for %v: no quorum has committed enough to prove a lease", Unavailable, d)
}

// Case returns a case of a public error, with a text of its own.
func Case(err error, text string) error { return &special{err, text} }
