package holding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock"
)

// Errors makes an adapter's errors of calls that run under a lock. Their texts go to the other
// side of the call, so they have no names of locks. Code in this process finds the causes.
type Errors struct {
	Package string // the adapter's

	Lost    func(cause error) error      // the lock was lost
	TooLong func(cause error) error      // the lock was held for longer than WithMaxHold allows
	Ended   func(err, cause error) error // the call's context ended with err
	Own     func(err, both error) error  // the handler's own error err, which both joins with a loss

	// Canceled and Late report whether the code of an error says that the call was cancelled,
	// or that its deadline has passed.
	Canceled, Late func(error) bool
}

// Settle combines the error of a call that ran under a lock with the error of the release. After
// a loss the call always fails, because another holder may have worked at the same time. If the
// handler has returned an error of its own, the other side gets that one: it says more than the
// loss.
func (e *Errors) Settle(err, released error) error {
	switch {
	case !errors.Is(released, zklock.ErrLost):
		// Either the handler has released the lock itself, or the release failed after the
		// lock was held to the end. The call's outcome is valid.
		return err
	case err == nil:
		return e.Lost(released)
	}
	both := fmt.Errorf("%w; the handler returned: %w", released, err)
	if errors.Is(err, zklock.ErrLost) || errors.Is(err, context.Canceled) || e.Canceled(err) {
		return e.Lost(both) // the handler's error says only that its context has ended
	}
	return e.Own(err, both)
}

// Overdue returns err, the error of an operation on ctx. If WithMaxHold or a revocation has ended
// ctx and so caused err, it returns the error that says so.
func (e *Errors) Overdue(ctx context.Context, err error) error {
	// The transport and the server look at the deadline, too. Either may report that it has passed
	// before the context's timer has run.
	if deadline, ok := ctx.Deadline(); ok && e.Late(err) && time.Until(deadline) <= time.Millisecond {
		<-ctx.Done()
	}
	cause := context.Cause(ctx)
	switch {
	case err == nil || !e.Canceled(err) && !e.Late(err) && !errors.Is(err, ctx.Err()):
	case cause == zklock.ErrMaxHold:
		return e.TooLong(err)
	case errors.Is(cause, zklock.ErrRevoked) && !errors.Is(err, zklock.ErrRevoked):
		return e.Ended(ctx.Err(), oneline.Join(cause, err))
	}
	return err
}

// Stopped returns an error if the lock is lost: the handler must stop using its stream. It
// returns nil if the handler may continue. A lock that is nil was not acquired yet.
func (e *Errors) Stopped(lock *zklock.Lock) error {
	if lock == nil {
		return nil
	}
	if loss := Loss(lock); loss != nil {
		return e.Lost(oneline.Join(e.stopped(), loss))
	}
	return nil
}

// stopped returns the error that is in those of a stream that its handler must not use any longer.
func (e *Errors) stopped() error {
	return errors.New(e.Package + ": the stream was stopped, the handler has to return")
}
