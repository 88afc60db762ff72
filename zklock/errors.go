package zklock

import (
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// ErrNotAcquired means that the lock was not acquired because somebody else
// has it: TryAcquire found it taken, or the wait was ended by WithWait or by
// the context, in which case the error matches the context's error too. A wait that
// ends before the ensemble has answered, on a session that works, is ErrNotAcquired
// as well.
// Nothing is held and nothing stays queued.
var ErrNotAcquired = errs.ErrNotAcquired

// ErrLost is matched by every *LostError: a lock stopped being held without
// having been released. Somebody else may hold it from now on.
var ErrLost = errors.New("lock lost")

// ErrReleased means that a handle was used after its Release. It is also the
// cause with which a lock's context ends on an orderly release.
var ErrReleased = errors.New("lock was released already")

// ErrReleasePending means that a release was begun, and the handle is of no
// more use, but the ensemble has not confirmed it yet. It goes on in the
// background until the queue node is gone or its session is; others wait for
// the lock until then. The error also matches what kept the release from being
// confirmed: the context's cause, ErrSessionExpired, ErrLeaseOver or ErrClosed, for
// example. A session that was given up ends at the ensemble when the client reaches
// a server again, or at its timeout.
var ErrReleasePending = errs.ErrReleasePending

// ErrClosed means that the Client was closed or is shutting down.
var ErrClosed = errs.ErrClosed

// ErrUnavailable means that there was no usable session with the ensemble for
// connect_timeout, or at the moment when the caller's context ended. Calls other
// than those that acquire also return it when the context ends before the ensemble
// has answered.
var ErrUnavailable = errs.ErrUnavailable

// ErrOutage is matched by the ErrUnavailable of an acquisition with WithFailFast: for
// almost all of connect_timeout the client has had no connection to the ensemble,
// though it asked for one.
var ErrOutage = errors.New("the ensemble cannot be reached")

// ErrInvalidName means that a lock name breaks the rules given in the package
// documentation, or that the handle was nil or not made by a Client.
var ErrInvalidName = errs.ErrInvalidName

// ErrMisuse means that the program is at fault, whatever name was asked for: an
// Acquirer or a function is nil, a lock was not made by a Client's method, its Client
// was not made by Open, or an adapter is set up for requests that cannot have a name.
// Such errors match ErrInvalidName or ErrConflict as well.
var ErrMisuse = errors.New("the lock is not set up correctly")

// ErrConflict means that the request contradicts what is there: contenders of
// another recipe use the name, or arguments do not go together.
var ErrConflict = errs.ErrConflict

// ErrDeadlock means that the context already carries the lock that was asked
// for, so that waiting for it would be waiting for oneself. See Reenter.
var ErrDeadlock = errors.New("the context already holds this lock, waiting for it would never end: join it with Reenter, or give goroutines of their own Detach(ctx)")

// ErrTooManyWaiters means that a limit on waiters, contenders or names was
// reached: max_waiters, max_contenders, max_names or WithMaxWaiters. A try meets
// only those on contenders and names.
var ErrTooManyWaiters = errs.ErrTooManyWaiters

// ErrSequenceExhausted means that the name's sequence counter is about to
// reach its end, where ZooKeeper hands out the same number again and again and
// no order can be told. Let the name go idle until the server has removed its
// container (within a minute or two), or remove the znode by hand; either
// starts the counter anew.
var ErrSequenceExhausted = errs.ErrSequenceExhausted

// ErrTokenRegression means that the ensemble's transaction ids ran backwards,
// as after a restore from an older snapshot: tokens would too. The Client
// refuses new locks until it is opened again.
var ErrTokenRegression = errs.ErrTokenRegression

// ErrUnknownOutcome means that the connection was lost before the ensemble
// told whether a transaction was applied.
var ErrUnknownOutcome = errors.New("outcome unknown, the operations may have been applied or not")

// ErrNoAuth means that the session lacks a permission, or that a node in the
// queue may not be read by it. Waiting would not help.
var ErrNoAuth = errs.ErrNoAuth

// ErrMaxHold is the cause with which adapters end a context whose lock was
// held for longer than they were told to allow.
var ErrMaxHold = errors.New("lock held for longer than WithMaxHold allows")

// Error is what the operations of this package fail with. It is added once,
// where the operation meets its caller; errors.Is and errors.As see through it.
type Error struct {
	// Op is what was being done: acquire, break, close, contenders, downgrade,
	// open, ping, release, shutdown, txn, verify.
	Op string

	// Name is the lock it was done to; "" if there is none.
	Name string

	// Err is why it failed.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("zklock: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("zklock: %s %q: %v", e.Op, e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// LostError tells how and when a lock was lost. It matches ErrLost.
type LostError struct {
	// Name is the lock.
	Name string

	// Cause says what happened; it matches ErrLeaseOver, ErrSessionExpired,
	// ErrNodeDeleted, or ErrClosed if the Client was closed.
	Cause error

	// At is when this process learned of it, or when the lease ran out if that
	// was earlier.
	At time.Time
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("zklock: lock %q lost: %v", e.Name, e.Cause)
}

// Is makes a LostError match ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Cause }

// ErrLeaseOver is a cause of loss: no quorum renewed the lease in time. The
// session may still have been alive.
var ErrLeaseOver = errs.ErrLeaseOver

// ErrNodeDeleted is a cause of loss: somebody else deleted the queue node, an
// operator for example.
var ErrNodeDeleted = errs.ErrNodeDeleted

// ErrSessionExpired is a cause of loss: the ensemble said that the session is
// over.
var ErrSessionExpired = errs.ErrSessionExpired

// What special cases match that are the program's fault.
var (
	misusedName = errors.Join(ErrInvalidName, ErrMisuse)
	misusedArgs = errors.Join(ErrConflict, ErrMisuse)
)

// Arguments that no lock can be made of.
var (
	// errNilAcquirer is the error of acquiring nothing.
	errNilAcquirer = errs.Case(misusedName, "the Acquirer is nil: it takes what a Client's method returns, such as client.Mutex(name)")

	// errNilClient is the error of a lock whose Client is nil or zero.
	errNilClient = errs.Case(misusedName, "the lock's Client was not made by Open")

	// errNoLock is the error of a zero Mutex, for example.
	errNoLock = errs.Case(misusedName, "the lock was not made by a Client's method, such as client.Mutex(name)")

	// errNilFunction is the error of doing nothing.
	errNilFunction = errs.Case(misusedArgs, "the function is nil: there is nothing to do under the lock")

	// errAllOfNil is the error of acquiring nothing among others.
	errAllOfNil = errs.Case(misusedArgs, "All of a nil lock: it takes what a Client's methods return")
)

// Reasons why a lock that the context holds cannot be joined with Reenter.
var (
	errReaderWrites = errs.Case(ErrDeadlock, "the context already holds this lock for reading, waiting for it to write would never end: release it first, or acquire it for writing from the start")
	errPartHeld     = errs.Case(ErrDeadlock, "the context already holds some of these names and not all, waiting for the others while holding these can end in a deadlock: release them first, or acquire all of them together from the start")
	errOtherKind    = errs.Case(ErrDeadlock, "the context already holds this name as another kind of lock, waiting for it would never end: use one kind of lock for a name")
)
