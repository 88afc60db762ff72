package connectlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/zklock/go-zklock/interceptors/verdict"
	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/zklock"
)

// The reasons of errors, see [Reason]. Programs should use them and must not depend on an error's
// text. They are those of package interceptors.
const (
	// ReasonContended means that another holder has the lock. The handler has not run.
	ReasonContended = verdict.Contended

	// ReasonUnavailable means that no lock could be acquired, because the ensemble cannot be
	// reached or the Client was closed. The handler has not run.
	ReasonUnavailable = verdict.Unavailable

	// ReasonLost means that the lock was lost while the handler ran. The handler's work may be
	// done, half done or not done, and another holder may have worked at the same time.
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
	var details []proto.Message
	info, retry := v.Details(c.retryDelay)
	if info != nil {
		details = append(details, info)
	}
	if retry != nil {
		details = append(details, retry)
	}
	return newError(connect.Code(v.Code), v.Text, err, details...)
}

// lost returns the error of a call whose lock was lost.
func lost(cause error) error {
	info, _ := verdict.Lost.Details(0)
	return newError(connect.Code(verdict.Lost.Code), verdict.Lost.Text, cause, info)
}

// settle returns the error of a call that ran under a lock and returned err, when the release
// of the lock returned released. After a loss the call always fails, because another holder may
// have worked at the same time. If the handler has returned an error of its own, the other side
// gets that one, since it says more than the loss.
func settle(err, released error) error {
	switch {
	case !errors.Is(released, zklock.ErrLost):
		// Either the handler has released the lock itself, or the release failed after the
		// lock was held to the end. The call's outcome is valid.
		return err
	case err == nil:
		return lost(released)
	}
	both := fmt.Errorf("%w; the handler returned: %w", released, err)
	if gaveUp(err) {
		return lost(both)
	}
	code, text := connect.CodeUnknown, err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		code = connect.CodeDeadlineExceeded
	}
	var own *connect.Error
	if !errors.As(err, &own) {
		return newError(code, text, both)
	}
	e := newError(own.Code(), own.Message(), both)
	for _, d := range own.Details() {
		e.AddDetail(d)
	}
	for key, values := range own.Meta() {
		e.Meta()[key] = values
	}
	return e
}

// gaveUp reports whether an error says only that the context has ended or that the lock was
// lost.
func gaveUp(err error) bool {
	return errors.Is(err, zklock.ErrLost) || errors.Is(err, context.Canceled) || connect.CodeOf(err) == connect.CodeCanceled
}

// errStopped is in the error of Send and Receive when the handler must not use its stream any
// more.
var errStopped = errors.New("connectlock: the stream was stopped, the handler has to return")

// stopped returns the error with which a handler must stop using its stream; nil if it may
// continue.
func stopped(lock *zklock.Lock) error {
	if loss := holding.Loss(lock); loss != nil {
		return lost(errors.Join(errStopped, loss))
	}
	return nil
}

// overdue returns err, the error of an operation on ctx. If WithMaxHold has ended ctx and so
// caused err, it returns the error that says so.
func overdue(ctx context.Context, err error) error {
	// The transport and the server look at the deadline, too. Either may report that it has passed
	// before the context's timer has run.
	if deadline, ok := ctx.Deadline(); ok && connect.CodeOf(err) == connect.CodeDeadlineExceeded && time.Until(deadline) <= time.Millisecond {
		<-ctx.Done()
	}
	if err == nil || context.Cause(ctx) != zklock.ErrMaxHold {
		return err
	}
	switch code := connect.CodeOf(err); {
	case code == connect.CodeCanceled, code == connect.CodeDeadlineExceeded, errors.Is(err, ctx.Err()):
		return tooLong(err)
	}
	return err
}

// tooLong returns the error of an operation that WithMaxHold has ended.
func tooLong(err error) error {
	return newError(connect.CodeDeadlineExceeded, "the call took longer than its lock may be held (WithMaxHold)", errors.Join(zklock.ErrMaxHold, err))
}
