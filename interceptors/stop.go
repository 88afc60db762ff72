package interceptors

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/zklock"
)

// errStopped is in the error of SendMsg and RecvMsg when the handler must not use its
// stream any more.
var errStopped = errors.New("interceptors: the stream was stopped, the handler has to return")

// stopped returns the error with which a handler must stop using its stream; nil if it
// may continue.
func stopped(lock *zklock.Lock) error {
	if loss := holding.Loss(lock); loss != nil {
		return lost(errors.Join(errStopped, loss))
	}
	return nil
}

// overdue returns err, the error of an operation on ctx. If WithMaxHold has ended ctx
// and so caused err, it returns the error that says so.
func overdue(ctx context.Context, err error) error {
	// The transport and the server look at the deadline, too. Either may report that it has passed
	// before the context's timer has run.
	if deadline, ok := ctx.Deadline(); ok && status.Code(err) == codes.DeadlineExceeded && time.Until(deadline) <= time.Millisecond {
		<-ctx.Done()
	}
	if err == nil || context.Cause(ctx) != zklock.ErrMaxHold {
		return err
	}
	switch code := status.Code(err); {
	case code == codes.Canceled, code == codes.DeadlineExceeded, errors.Is(err, ctx.Err()):
		return tooLong(err)
	}
	return err
}

// tooLong returns the error of an operation that WithMaxHold has ended.
func tooLong(err error) error {
	return &statusError{status.New(codes.DeadlineExceeded, "the call took longer than its lock may be held (WithMaxHold)"), errors.Join(zklock.ErrMaxHold, err)}
}
