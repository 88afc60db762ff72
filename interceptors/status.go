package interceptors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Domain is the domain of the ErrorInfo in the details of this package's statuses.
const Domain = "zklock"

// The reasons of that ErrorInfo. Programs should use them and must not depend on a
// status's message. Package middleware has the same reasons in its error responses.
const (
	// ReasonContended means that another holder has the lock. The handler has not
	// run.
	ReasonContended = "LOCK_CONTENDED"

	// ReasonUnavailable means that no lock could be acquired, because the ensemble
	// cannot be reached or the Client was closed. The handler has not run.
	ReasonUnavailable = "LOCK_UNAVAILABLE"

	// ReasonLost means that the lock was lost while the handler ran. The handler's
	// work may be done, half done or not done, and another holder may have worked
	// at the same time.
	ReasonLost = "LOCK_LOST"

	// ReasonName means that the call does not name a lock, or that the name is
	// invalid. The handler has not run.
	ReasonName = "LOCK_NAME"

	// ReasonStale means that the call was made on behalf of a lock that has a newer
	// holder by now. The handler has not run.
	ReasonStale = "LOCK_STALE"

	// ReasonError means that the program that locks or its set-up is at fault. That
	// program has logged the error. The handler has not run.
	ReasonError = "LOCK_ERROR"
)

// Reason returns the reason that this package has given an error, in this process or on
// the other side of a connection. It returns "" for other errors.
func Reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info.GetReason()
		}
	}
	return ""
}

// statusError is an error with a status for the other side and a cause for code in this
// process. Its text is only the status's, because the text is sent to the other side if
// a handler or interceptor wraps the error.
type statusError struct {
	status *status.Status
	cause  error
}

// Error implements error.
func (e *statusError) Error() string { return e.status.String() }

// GRPCStatus returns the status to package status.
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// Unwrap lets errors.Is and errors.As find the cause.
func (e *statusError) Unwrap() error { return e.cause }

// verdict is how an error is reported to the other side.
type verdict struct {
	code   codes.Code
	reason string // "" for no ErrorInfo
	text   string
	retry  bool // with RetryInfo
}

// classify returns the verdict for a call whose context is ctx and whose lock failed
// with err. All cases are decided here.
func (c *config) classify(ctx context.Context, err error) verdict {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(fence.ErrStale):
		return verdict{codes.FailedPrecondition, ReasonStale, "the lock under which this call was made has a newer holder: acquire the lock again before you repeat the call", false}
	case is(errBadSequencer):
		return verdict{codes.InvalidArgument, ReasonName, "the call's sequencer metadata is malformed", false}
	case is(zklock.ErrLost):
		return lostVerdict
	case ctx.Err() != nil && is(ctx.Err()):
		return ended(ctx, is(zklock.ErrUnavailable))
	case is(zklock.ErrMisuse): // may match ErrInvalidName too, but is not the caller's fault
		return misconfigured
	case is(zklock.ErrInvalidName):
		return verdict{codes.InvalidArgument, ReasonName, "the value that names the lock is missing from the call, or is not allowed", false}
	case is(zklock.ErrUnavailable), is(zklock.ErrClosed):
		return verdict{codes.Unavailable, ReasonUnavailable, "no lock can be acquired at the moment, try again later", true}
	case is(zklock.ErrNotAcquired), is(zklock.ErrTooManyWaiters):
		return verdict{c.code, ReasonContended, "the lock is in use, try again later", true}
	}
	return misconfigured
}

// misconfigured is the verdict for errors of the program that locks.
var misconfigured = verdict{codes.Internal, ReasonError, "acquiring the lock failed, and the program that locks has logged the reason", false}

// lostVerdict has no RetryInfo: how much of its work the handler has done is unknown.
var lostVerdict = verdict{codes.Aborted, ReasonLost, "the lock was lost during the call, its work may be done, half done or not done: check before you repeat it", false}

// ended returns the verdict for a wait that the call's own context has ended.
func ended(ctx context.Context, unavailable bool) verdict {
	if ctx.Err() != context.DeadlineExceeded {
		return verdict{codes.Canceled, "", "the call was canceled while it waited for its lock", false}
	}
	v := verdict{codes.DeadlineExceeded, ReasonContended, "the call's deadline passed before it got the lock", false}
	if unavailable {
		v.reason = ReasonUnavailable
	}
	return v
}

// refuse returns the error of a call that was not served because of err.
func (c *config) refuse(ctx context.Context, call Call, err error) error {
	v := c.classify(ctx, err)
	if v.reason == ReasonError {
		// The status does not describe the error, so it is logged.
		c.logger.ErrorContext(ctx, "interceptors: acquiring the lock of a call failed", "method", call.FullMethod, "error", err)
	}
	return &statusError{v.status(c.retryDelay), err}
}

// status returns the verdict as a status, which contains no names of locks or servers.
func (v verdict) status(retryDelay time.Duration) *status.Status {
	s := status.New(v.code, v.text)
	if v.reason == "" {
		return s
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: v.reason, Domain: Domain}}
	if v.retry && retryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryDelay + rand.N(retryDelay/2+1))})
	}
	if with, err := s.WithDetails(details...); err == nil { // fails only for code OK
		return with
	}
	return s
}

// settle returns the error of a call that ran under a lock and returned err, when the
// release of the lock returned released. After a loss the call always fails, because
// another holder may have worked at the same time. If the handler has returned an error
// of its own, the other side gets that one, since it says more than the loss.
func settle(err, released error) error {
	switch {
	case !errors.Is(released, zklock.ErrLost):
		// Either the handler has released the lock itself, or the release failed
		// after the lock was held to the end. The call's outcome is valid.
		return err
	case err == nil:
		return lost(released)
	case gaveUp(err):
		return lost(both(released, err))
	}
	return &statusError{statusOf(err), both(released, err)}
}

// both joins the loss of a lock and the handler's error in one line.
func both(released, err error) error {
	return fmt.Errorf("%w; the handler returned: %w", released, err)
}

// lost returns the error of a call whose lock was lost.
func lost(cause error) error { return &statusError{lostVerdict.status(0), cause} }

// gaveUp reports whether an error says only that the context has ended or that the lock
// was lost.
func gaveUp(err error) bool {
	return errors.Is(err, zklock.ErrLost) || errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
}

// statusOf returns the status that the server would send for a handler's error.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}
