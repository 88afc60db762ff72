package connectlock

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/internal/verdict"
	"github.com/zklock/go-zklock/zklock"
)

// The reasons of errors, see [Reason]. Programs should use them and must not depend on an error's
// text. They are those of package interceptors.
const (
	// ReasonContended means that another holder has the lock. The handler has not run.
	ReasonContended = verdict.Contended

	// ReasonDeadlock means that the call's wait for its lock was ended, because it would never have
	// ended: see zklock.DeadlockError. The handler has not run. A caller that holds locks should
	// release them, and then begin again. A repetition under the same locks waits again.
	ReasonDeadlock = verdict.Deadlock

	// ReasonUnavailable means that no lock could be acquired, because the ensemble cannot be
	// reached or has lost transactions, or the Client was closed. The handler has not run.
	ReasonUnavailable = verdict.Unavailable

	// ReasonLost means that the lock was lost while the handler ran. The handler's work may be
	// done, half done or not done, and another holder may have worked at the same time. The code is that of WithLostCode.
	ReasonLost = verdict.LockLost

	// ReasonName means that the call does not name a lock, or that the name is invalid. The
	// handler has not run.
	ReasonName = verdict.Name

	// ReasonError means that the program that locks or its set-up is at fault. That program has
	// logged the error. The handler has not run.
	ReasonError = verdict.Error
)

// Reason returns the reason that this package, or package interceptors, has given an error, in
// this process or on the other side of a connection. It returns "" for other errors.
func Reason(err error) string {
	var e *connect.Error
	if !errors.As(err, &e) {
		return ""
	}
	for _, d := range e.Details() {
		value, err := d.Value()
		if err != nil {
			continue // a type that this program does not have
		}
		if info, ok := value.(*errdetails.ErrorInfo); ok && info.GetDomain() == verdict.Domain {
			return info.GetReason()
		}
	}
	return ""
}

// private is an error with a text for the other side and a cause for code in this process.
type private struct {
	text  string
	cause error
}

// Error implements error.
func (e *private) Error() string { return e.text }

// Unwrap lets errors.Is and errors.As find the cause.
func (e *private) Unwrap() error { return e.cause }

// newError returns an error of this package. It contains no names of locks or servers.
func newError(code connect.Code, text string, cause error, details ...proto.Message) *connect.Error {
	e := connect.NewError(code, &private{text, cause})
	for _, m := range details {
		if d, err := connect.NewErrorDetail(m); err == nil { // fails only for a message that cannot be marshaled
			e.AddDetail(d)
		}
	}
	return e
}

// refuse returns the error of a call that was not served because of err.
func (c *config) refuse(ctx context.Context, procedure string, err error) error {
	v := verdict.Of(ctx, err, verdict.Code(c.code))
	if v.Reason == verdict.Error {
		// The error of the call does not describe this one, so it is logged.
		c.logger.ErrorContext(ctx, "connectlock: acquiring the lock of a call failed", "procedure", procedure, "error", err)
	}
	return verdictError(v, c.retryDelay, err)
}

// lost returns the error of a call whose lock was lost while its handler ran.
func lost(code connect.Code, cause error) error {
	return verdictError(verdict.Lost(verdict.Code(code)), 0, cause)
}

// verdictError returns a verdict as an error.
func verdictError(v verdict.Verdict, retryDelay time.Duration, cause error) *connect.Error {
	var details []proto.Message
	if v.Reason != "" {
		details = append(details, &errdetails.ErrorInfo{Reason: v.Reason, Domain: verdict.Domain})
	}
	if delay := v.RetryAfter(retryDelay, cause); delay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	return newError(connect.Code(v.Code), v.Text, cause, details...)
}

// newFailures returns what makes the errors of calls that run under a lock. lostCode is the code of a lost lock.
func newFailures(lostCode connect.Code) *holding.Errors {
	return &holding.Errors{
		Package: "connectlock",
		Lost:    func(cause error) error { return lost(lostCode, cause) },
		TooLong: func(cause error) error {
			return newError(connect.CodeDeadlineExceeded, "the call took longer than its lock may be held (WithMaxHold)", oneline.Join(zklock.ErrMaxHold, cause))
		},
		Ended:    func(err, cause error) error { return newError(codeOf(err), err.Error(), cause) },
		Own:      own,
		Canceled: func(err error) bool { return connect.CodeOf(err) == connect.CodeCanceled },
		Late:     func(err error) bool { return connect.CodeOf(err) == connect.CodeDeadlineExceeded },
	}
}

// own returns a handler's own error for the other side, with another cause.
func own(err, cause error) error {
	code, text := connect.CodeUnknown, err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		code = connect.CodeDeadlineExceeded
	}
	var own *connect.Error
	if !errors.As(err, &own) {
		return newError(code, text, cause)
	}
	e := newError(own.Code(), own.Message(), cause)
	for _, d := range own.Details() {
		e.AddDetail(d)
	}
	for key, values := range own.Meta() {
		e.Meta()[key] = values
	}
	return e
}
