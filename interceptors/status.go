package interceptors

import (
	"context"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zklock/go-zklock/internal/verdict"
)

// Domain is the domain of the ErrorInfo in the details of this package's statuses.
const Domain = verdict.Domain

// The reasons of that ErrorInfo. Programs should use them and must not depend on a
// status's message. Package middleware has the same reasons in its error responses.
const (
	// ReasonContended means that another holder has the lock. The handler has not
	// run.
	ReasonContended = verdict.Contended

	// ReasonDeadlock means that the call's wait for its lock was ended, because it would never
	// have ended: see zklock.DeadlockError. The handler has not run. A caller that holds locks
	// should release them, and then begin again. A repetition under the same locks waits again.
	ReasonDeadlock = verdict.Deadlock

	// ReasonUnavailable means that no lock could be acquired, because the ensemble
	// cannot be reached or has lost transactions, or the Client was closed. The handler
	// has not run.
	ReasonUnavailable = verdict.Unavailable

	// ReasonLost means that the lock was lost while the handler ran. The handler's
	// work may be done, half done or not done, and another holder may have worked
	// at the same time. The code is that of WithLostCode.
	ReasonLost = verdict.LockLost

	// ReasonName means that the call does not name a lock, or that the name is
	// invalid. The handler has not run.
	ReasonName = verdict.Name

	// ReasonStale means that the call was made on behalf of a lock that has a newer
	// holder by now. The handler has not run.
	ReasonStale = verdict.Stale

	// ReasonError means that the program that locks or its set-up is at fault. That
	// program has logged the error. The handler has not run.
	ReasonError = verdict.Error
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

// refuse returns the error of a call that was not served because of err.
func (c *config) refuse(ctx context.Context, call Call, err error) error {
	v := verdict.Of(ctx, err, verdict.Code(c.code))
	if v.Reason == ReasonError {
		// The status does not describe the error, so it is logged.
		c.logger.ErrorContext(ctx, "interceptors: acquiring the lock of a call failed", "method", call.FullMethod, "error", err)
	}
	return &statusError{statusWith(v, c.retryDelay, err), err}
}

// statusWith returns the verdict for err as a status, which contains no names of locks or servers.
func statusWith(v verdict.Verdict, retryDelay time.Duration, err error) *status.Status {
	s := status.New(codes.Code(v.Code), v.Text)
	if v.Reason == "" {
		return s
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: v.Reason, Domain: Domain}}
	if delay := v.RetryAfter(retryDelay, err); delay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	if with, err := s.WithDetails(details...); err == nil { // fails only for code OK
		return with
	}
	return s
}

// lost returns the error of a call whose lock was lost while its handler ran.
func lost(code codes.Code, cause error) error {
	return &statusError{statusWith(verdict.Lost(verdict.Code(code)), 0, cause), cause}
}

// statusOf returns the status that the server would send for a handler's error.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}
