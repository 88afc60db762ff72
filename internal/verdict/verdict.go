// Package verdict is shared by the adapters for remote procedure calls. It decides how a failure
// of a call's lock is reported to the other side. It needs no protobuf: the adapters make the
// details of an error from what it decides.
package verdict

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Domain is the domain of the ErrorInfo in the details of an error.
const Domain = "zklock"

// The reasons of that ErrorInfo; the adapters describe them.
const (
	Contended   = "LOCK_CONTENDED"
	Deadlock    = "LOCK_DEADLOCK"
	Unavailable = "LOCK_UNAVAILABLE"
	LockLost    = "LOCK_LOST"
	Name        = "LOCK_NAME"
	Stale       = "LOCK_STALE"
	Error       = "LOCK_ERROR"
)

// Code is a code of gRPC, which are those of Connect too.
type Code uint32

// The codes that verdicts have.
const (
	Canceled           Code = 1
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	FailedPrecondition Code = 9
	Aborted            Code = 10
	Internal           Code = 13
	NotAvailable       Code = 14
)

// ErrBadSequencer means that a call's sequencers could not be parsed.
var ErrBadSequencer = errors.New("bad " + fence.Key + " metadata")

// Verdict is how an error is reported to the other side.
type Verdict struct {
	Code   Code
	Reason string // "" for no ErrorInfo
	Text   string // without names of locks or servers
	Retry  bool   // with RetryInfo
}

// Of returns the verdict for a call whose context is ctx and whose lock failed with err.
// contended is the code for a lock that another holder has. All cases are decided here.
func Of(ctx context.Context, err error, contended Code) Verdict {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(fence.ErrStale):
		return Verdict{FailedPrecondition, Stale, "the lock of this call has a newer holder: acquire it again before you repeat the call", false}
	case is(ErrBadSequencer):
		return Verdict{InvalidArgument, Name, "the call's sequencer metadata is malformed", false}
	case is(zklock.ErrLost):
		return tryLater // the handler has not run
	case ctx.Err() != nil && is(ctx.Err()):
		return ended(ctx, is(zklock.ErrUnavailable))
	case is(zklock.ErrInvalidName):
		return Verdict{InvalidArgument, Name, "the value that names the lock is missing from the call, or is not allowed", false}
	case is(zklock.ErrUnavailable), is(zklock.ErrClosed), zklock.Reason(err) == "token_regression":
		return tryLater
	case errors.As(err, new(*zklock.DeadlockError)):
		return Verdict{contended, Deadlock, "the wait for the lock was part of a deadlock, and was ended: release the locks that you hold, and begin again", true}
	case is(zklock.ErrNotAcquired), is(zklock.ErrTooManyWaiters):
		return Verdict{contended, Contended, "the lock is in use, try again later", true}
	}
	return misconfigured
}

// misconfigured is the verdict for errors of the program that locks.
var misconfigured = Verdict{Internal, Error, "acquiring the lock failed, and the program that locks has logged the reason", false}

// tryLater is the verdict for calls that were not served and may be made again.
var tryLater = Verdict{NotAvailable, Unavailable, "no lock can be acquired at the moment, try again later", true}

// Lost is the verdict for a lock that was lost during the call. code is that of the option
// WithLostCode. It has no RetryInfo: how much of its work the handler has done is unknown.
func Lost(code Code) Verdict {
	return Verdict{code, LockLost, "the lock was lost during the call, its work may be done, half done or not done: check before you repeat it", false}
}

// LostCode returns the code of Lost, given that of WithLostCode, 0 without the option, and that of a lock that is
// in use. By default the two differ: a client that repeats calls whose lock was in use must not repeat work
// that may be done.
func LostCode(set, contended Code) Code {
	switch {
	case set != 0:
		return set
	case contended == FailedPrecondition:
		return Aborted
	}
	return FailedPrecondition
}

// ended returns the verdict for a wait that the call's own context has ended.
func ended(ctx context.Context, unavailable bool) Verdict {
	if ctx.Err() != context.DeadlineExceeded {
		return Verdict{Canceled, "", "the call was canceled while it waited for its lock", false}
	}
	v := Verdict{DeadlineExceeded, Contended, "the call's deadline passed before it got the lock", false}
	if unavailable {
		v.Reason = Unavailable
	}
	return v
}

// RetryAfter returns the delay of the RetryInfo of a call that failed with err: retryDelay, or the estimate of err
// if that is longer, plus a random part of up to half of that. It is 0 if the error has none.
func (v Verdict) RetryAfter(retryDelay time.Duration, err error) time.Duration {
	if !v.Retry || retryDelay <= 0 {
		return 0
	}
	delay := served.RetryAfter(retryDelay, err)
	return delay + rand.N(delay/2+1)
}
