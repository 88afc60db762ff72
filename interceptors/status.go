package interceptors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Domain is the domain of the ErrorInfo that statuses have as a detail.
const Domain = "zklock"

// Reasons are the reason of that ErrorInfo: for programs, which must not depend
// on a status's message. They are those of the problems on the HTTP side.
const (
	// ReasonContended means that somebody else's lock was in the way. The
	// handler has not run.
	ReasonContended = "LOCK_CONTENDED"

	// ReasonUnavailable means that no lock could be had from the ensemble. The
	// handler has not run.
	ReasonUnavailable = "LOCK_UNAVAILABLE"

	// ReasonLost means that the lock was lost while the handler ran. What the
	// handler did may have been done, or half of it, and not alone.
	ReasonLost = "LOCK_LOST"

	// ReasonName means that the call did not name a lock, or named one that
	// cannot be. The handler has not run.
	ReasonName = "LOCK_NAME"

	// ReasonStale means that the call was made on behalf of a lock that has
	// passed on to somebody else. The handler has not run.
	ReasonStale = "LOCK_STALE"

	// ReasonError means that something is wrong on the side of the one who
	// locks. The handler has not run.
	ReasonError = "LOCK_ERROR"
)

// Reason returns the reason that an error has from this package, here or on the
// other side of a connection; "" if it has none.
func Reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info.GetReason()
		}
	}
	return ""
}

// statusError is an error with a status for whoever made the call, and the
// cause for whoever is in this process. The text is the status's alone: it gets
// to the other side if somebody wraps the error.
type statusError struct {
	status *status.Status
	cause  error
}

// Error implements error.
func (e *statusError) Error() string { return e.status.String() }

// GRPCStatus is for package status.
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// Unwrap lets errors.Is and errors.As find the cause.
func (e *statusError) Unwrap() error { return e.cause }

// verdict is how an error is told to the one who made the call.
type verdict struct {
	code   codes.Code
	reason string // "" for no ErrorInfo
	text   string
	retry  bool // with RetryInfo
}

// classify says how to fail a call whose context is ctx and whose lock ended in
// err. It is the one table of cases.
func (c *config) classify(ctx context.Context, err error) verdict {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(fence.ErrStale):
		return verdict{codes.FailedPrecondition, ReasonStale, "the lock that this call was made under has passed on", false}
	case is(errBadSequencer):
		return verdict{codes.InvalidArgument, ReasonName, "the call's sequencer cannot be read", false}
	case is(zklock.ErrLost):
		return lostVerdict
	case ctx.Err() != nil && is(ctx.Err()):
		return ended(ctx, is(zklock.ErrUnavailable))
	case is(zklock.ErrMisuse): // which may match ErrInvalidName, and is not the caller's fault
		return misconfigured
	case is(zklock.ErrInvalidName):
		return verdict{codes.InvalidArgument, ReasonName, "the call names no lock, or one that cannot be", false}
	case is(zklock.ErrUnavailable), is(zklock.ErrClosed):
		return verdict{codes.Unavailable, ReasonUnavailable, "locks cannot be had at the moment", true}
	case is(zklock.ErrNotAcquired), is(zklock.ErrTooManyWaiters):
		return verdict{c.code, ReasonContended, "somebody else is working on it", true}
	}
	return misconfigured
}

// misconfigured is for what is wrong with the program.
var misconfigured = verdict{codes.Internal, ReasonError, "the call could not be locked", false}

// lostVerdict has no RetryInfo: nobody knows how far the handler has come.
var lostVerdict = verdict{codes.Aborted, ReasonLost, "the lock was lost during the call; what came of it is unknown", false}

// ended is the verdict on a wait that the call's own context has ended.
func ended(ctx context.Context, unavailable bool) verdict {
	if ctx.Err() != context.DeadlineExceeded {
		return verdict{codes.Canceled, "", "the call was canceled while it waited for its lock", false}
	}
	v := verdict{codes.DeadlineExceeded, ReasonContended, "the time for this call ran out before its turn", false}
	if unavailable {
		v.reason = ReasonUnavailable
	}
	return v
}

// refuse is the error of a call that was not served because of err.
func (c *config) refuse(ctx context.Context, err error) error {
	v := c.classify(ctx, err)
	if v.reason == ReasonError {
		// The other side learns nothing of it.
		method, _ := grpc.Method(ctx) // servers only
		c.logger.ErrorContext(ctx, "interceptors: a call could not be locked", "method", method, "error", err)
	}
	return &statusError{v.status(c.retryDelay), err}
}

// status makes a status that tells nothing about locks and servers.
func (v verdict) status(retryDelay time.Duration) *status.Status {
	s := status.New(v.code, v.text)
	if v.reason == "" {
		return s
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: v.reason, Domain: Domain}}
	if v.retry && retryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryDelay + rand.N(retryDelay/2+1))})
	}
	if with, err := s.WithDetails(details...); err == nil { // which fails for code OK only
		return with
	}
	return s
}

// settle is the outcome of what ran under a lock and returned err, when the
// release of the lock returned released. A loss counts whatever came of the
// call, since it may not have been alone; an error of the handler's own tells
// more than the loss does, and stays what the other side sees.
func settle(err, released error) error {
	switch {
	case !errors.Is(released, zklock.ErrLost):
		// Released by the handler itself, or a failure to release what was held
		// to the end: the outcome is right.
		return err
	case err == nil:
		return lost(released)
	case gaveUp(err):
		return lost(both(released, err))
	}
	return &statusError{statusOf(err), both(released, err)}
}

// both is the loss of a lock and what the handler made of it, in one line.
func both(released, err error) error {
	return fmt.Errorf("%w; the handler returned: %w", released, err)
}

// lost is the error of a call whose lock was lost.
func lost(cause error) error { return &statusError{lostVerdict.status(0), cause} }

// gaveUp reports whether an error says no more than that the context has ended.
func gaveUp(err error) bool {
	return errors.Is(err, zklock.ErrLost) || errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
}

// statusOf is the status that the server would send for a handler's error.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}
