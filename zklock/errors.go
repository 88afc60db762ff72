package zklock

import (
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// ErrNotAcquired means that the lock was not acquired because of other contenders: TryAcquire
// found it taken, or [WithWait] or the context ended the wait. If it was the context, the error
// also matches the context's error. A wait that ends before the ensemble has answered, on a session
// that works, fails with ErrNotAcquired too. The text names the holder and since when it has wanted
// the lock, or says how many contenders are ahead. That of a try says only what the client knows
// without a further request.
var ErrNotAcquired = errs.ErrNotAcquired

// ErrReleased means that a [Lock] was used after its Release. It is also the cause of the end of
// the lock's contexts then.
var ErrReleased = errs.ErrReleased

// ErrRevoked means that an operator has asked for the lock: see [Client.Revoke]. The contexts of a
// lock with [WithRevocable] end with a cause that matches it and whose text has the operator's
// reason. The lock is still held.
var ErrRevoked = errors.New("lock revoked: its holder is asked to give it back")

// ErrReleasePending means that the lock was given back, but that the ensemble has not
// confirmed the release. The release continues in the background until the queue node
// or its session is gone; other contenders wait for the lock until then. The text has the
// reason why the confirmation is missing; if that is the caller's context, the error also
// matches the context's error. A session that the client has given up ends at the ensemble
// when the client reaches a server again, or when its timeout has passed.
var ErrReleasePending = errs.ErrReleasePending

// ErrClosed means that the [Client] was closed or is shutting down.
var ErrClosed = errs.ErrClosed

// ErrUnavailable means that the client had no usable session with the ensemble for all
// of connect_timeout, or at the moment when the caller's context ended; a try goes on for a
// quarter of that time only, see [Acquirer]. Calls that do not acquire also return it when the
// context ends before the ensemble has answered. It also means that a quota or a setting of the
// servers forbids locks: then the call fails at once, and the text says what an operator has to
// change. Its child is [ErrOutage].
var ErrUnavailable = errs.ErrUnavailable

// ErrOutage means that the client has tried for almost all of connect_timeout to connect
// to the ensemble, without success. Only acquisitions with [WithFailFast] return it.
var ErrOutage = errs.ErrOutage

// ErrBadEnsemble means that the ensemble is not as locks need it. Trying again does not help before
// an operator has acted; the text says what to do. [Reason] returns why:
//
//   - root_missing: the root does not exist, and the URL forbids the client to create it, with
//     create_root=false. No name is in use then.
//   - session_timeout: locks cannot work with the session timeout that the servers have granted. It
//     is too short for tick_time, or so long that tick_time seems to be less than the servers'
//     tickTime. Change session_timeout or tick_time, or the servers' limits.
//   - token_regression: the ensemble's transaction ids have gone back, because it was set up again
//     or restored from an older snapshot, and tokens would repeat. The [Client] has ended its
//     sessions, and acquires no more locks. Open a new one when no holder from before is at work.
//     [Client.Healthy], [Client.Ping] and [Stats] report it, too.
var ErrBadEnsemble = errs.ErrBadEnsemble

// Reason returns the reason of an error that matches [ErrBadEnsemble]: root_missing, session_timeout
// or token_regression. It returns "" for all other errors.
func Reason(err error) string {
	switch {
	case errors.Is(err, errs.ErrRootMissing):
		return "root_missing"
	case errors.Is(err, errs.ErrSessionTimeout):
		return "session_timeout"
	case errors.Is(err, errs.ErrTokenRegression):
		return "token_regression"
	}
	return ""
}

// ErrInvalidName means that a lock name breaks the rules that [Client.Mutex] lists.
var ErrInvalidName = errs.ErrInvalidName

// ErrConflict means that the request contradicts other contenders or itself: contenders of
// another recipe use the name, the name's sequence numbers are used up, another program has an
// ephemeral znode at the root or the name or above them, or the arguments do not go together.
var ErrConflict = errs.ErrConflict

// ErrMisuse means a mistake in the program that does not depend on the lock's name. An Acquirer or
// a function is nil; a lock was not made by a Client's method, or its Client not by Open,
// OpenConfig or OpenConnector; or an adapter is set up so that no request can have a name.
var ErrMisuse = errors.New("the lock is not set up correctly")

// ErrDeadlock means that the wait for the lock would never end. Either the caller's context, or a caller
// of this request, already holds the lock, so that the caller would wait for itself: see [Reenter] and
// [Detach]. Or the wait was in a circle of waits: then the error is a [*DeadlockError], and matches
// [ErrNotAcquired], too.
var ErrDeadlock = errs.ErrDeadlock

// ErrTooManyWaiters means that a limit was reached: max_waiters, max_contenders or
// max_names of the URL, or [WithMaxWaiters]. TryAcquire is subject to max_contenders and
// max_names only.
var ErrTooManyWaiters = errs.ErrTooManyWaiters

// ErrBusy means that the goroutines of this client that wait for the name already would keep it for longer than
// the caller can wait. Only acquisitions with [WithFailBusy] return it, at once and without a request. The error
// is a [*BusyError].
var ErrBusy = errs.ErrBusy

// BusyError is an [ErrBusy]. Its Wait is how long the wait would take, from how often this process got the lock
// of late.
type BusyError = errs.Busy

// ErrUnknownOutcome means that it is not known whether a transaction of [Lock.Txn] was
// applied: the connection was lost before the ensemble's reply.
var ErrUnknownOutcome = errs.ErrUnknownOutcome

// ErrNoAuth means that the client's session lacks a right on a znode, or cannot
// authenticate. Trying again does not help.
var ErrNoAuth = errs.ErrNoAuth

// ErrMaxHold is the cause of a context that has ended because its lock was held for longer than
// [WithMaxHold] allows, or an adapter's option of that name.
var ErrMaxHold = errors.New("lock held for longer than WithMaxHold allows")

// ErrLost means that a lock stopped being held without a release. Another client may
// hold it from now on. Every *[LostError] matches it. Its children are causes of loss.
var ErrLost = errs.ErrLost

// ErrLeaseOver is a cause of loss: no quorum renewed the session's lease in time. The
// session may still have been alive at that moment. If this process, or its machine, did not
// run during that time, or if the ensemble has refused the heartbeats, the text of the cause says so.
var ErrLeaseOver = errs.ErrLeaseOver

// ErrNodeDeleted is a cause of loss: another client deleted the queue node, for example
// an operator with [Client.Break].
var ErrNodeDeleted = errs.ErrNodeDeleted

// ErrSessionExpired is a cause of loss: the ensemble reported that the session has
// expired.
var ErrSessionExpired = errs.ErrSessionExpired

// Errors of arguments that cannot be acquired, or used. Those of lockable.check are for an
// Acquirer that is nil, for one whose Client is nil or zero, and for one that is zero itself.
var (
	errNilAcquirer = errs.Case(ErrMisuse, "the Acquirer is nil: pass what a Client's method returns, such as client.Mutex(name)")
	errNilClient   = errs.Case(ErrMisuse, "the lock's Client was not made by Open or OpenConnector")
	errNoLock      = errs.Case(ErrMisuse, "the lock was not made by a Client's method: use client.Mutex(name), for example")
	errNilFunction = errs.Case(ErrMisuse, "the function is nil: pass the work to do under the lock")
	errNilRefusal  = errs.Case(ErrMisuse, "Refuse of a nil error: pass the reason why there is no lock")
	errAllOfNil    = errs.Case(ErrMisuse, "All of a nil lock: pass what a Client's methods return, such as client.Mutex(name)")
)

// Reasons why a lock that the context holds cannot be joined with Reenter.
var (
	errReaderWrites = errs.Case(ErrDeadlock, "the context already holds this lock for reading, and waiting for it as a writer would never end: release it first, or acquire it for writing from the start")
	errOtherKind    = errs.Case(ErrDeadlock, "the context already holds this name as another kind of lock, and waiting for it would never end: use one kind of lock for a name")
)

// Error is the error of this package's operations. It adds the operation and the lock
// to what went wrong, which [errors.Is] and [errors.As] find.
type Error struct {
	// Op is the operation: acquire, break, close, contenders, deadlocks, downgrade, get, healthy, label, locks, nested waits,
	// open, parse, ping, release, revoke, shutdown, slots, txn, verify, watch.
	Op string

	Name string // the lock's name; "" if the operation is not about a lock
	Err  error  // what went wrong
}

// Error implements error.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("zklock: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("zklock: %s %q: %v", e.Op, e.Name, e.Err)
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// annotate makes the error of an operation an Error if it is not nil.
func annotate(err *error, op, name string) {
	if *err != nil {
		*err = &Error{Op: op, Name: name, Err: *err}
	}
}

// LostError reports why and when a lock was lost. It matches [ErrLost], and its cause if that is
// a child of ErrLost.
type LostError struct {
	Name string // the lock's name

	// Cause is the reason. It matches ErrLeaseOver, ErrSessionExpired or ErrNodeDeleted, or
	// is ErrClosed if the Client was closed. In rare cases it is none of them, for example
	// if the ensemble shortened the session timeout on a reconnect.
	Cause error

	// At is when this process noticed the loss, or when the lease ran out if that was
	// earlier.
	At time.Time
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("zklock: lock %q lost: %v", e.Name, e.Cause)
}

// Is makes a LostError match ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the cause, and nil if that is not a child of ErrLost: ErrClosed is not.
func (e *LostError) Unwrap() error {
	if !errors.Is(e.Cause, ErrLost) {
		return nil
	}
	return e.Cause
}
