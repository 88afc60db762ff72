package interceptors

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/zklock"
)

// errStopped is the cause of what a handler gets that goes on with its stream
// when the lock is lost.
var errStopped = errors.New("interceptors: nothing is sent or received any more")

// stopped says why a handler may not go on with its stream, if it may not.
func stopped(lock *zklock.Lock) error {
	if lock.Valid() {
		return nil
	}
	switch err := lock.Err(); {
	case errors.Is(err, zklock.ErrReleased):
		return nil // by the handler itself
	case err != nil:
		return lost(errors.Join(errStopped, err))
	}
	// The lease has run out, and nobody has announced it yet.
	return lost(errors.Join(errStopped, zklock.ErrLost))
}

// overdue is err, the outcome of something under ctx, as the end of the time
// that WithMaxHold allows if it is that.
func overdue(ctx context.Context, err error) error {
	if err == nil || context.Cause(ctx) != zklock.ErrMaxHold {
		return err
	}
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return tooLong(err)
	}
	return err
}

// tooLong is the error of something that WithMaxHold has ended.
func tooLong(err error) error {
	return &statusError{status.New(codes.DeadlineExceeded, "the call took longer than its lock may be held"), errors.Join(zklock.ErrMaxHold, err)}
}
