package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Acquirer is a lock that can be acquired: a [Mutex], a [Reader], a [Semaphore] or a [Group]. It
// is meant as a parameter of functions, like [Do] and those of the adapters. Only types of this
// package implement it, so that it can get more methods. [Refuse] returns one that always fails.
type Acquirer interface {
	// Name returns the lock's name.
	Name() string

	// Acquire waits until the caller holds the lock. It fails when ctx ends, or if
	// the lock cannot be acquired. ctx bounds the wait only: cancelling it later
	// releases nothing. A lock that comes when ctx has ended, or after its deadline, is given
	// back. After an error nothing is held, and the client removes the
	// queue node, or the node goes with its session. If ctx ended the wait, the error
	// matches ctx.Err() and ErrNotAcquired, or ctx.Err() and ErrUnavailable if there
	// was no usable session at that moment.
	Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)

	// TryAcquire is like Acquire, but does not wait for other contenders: it fails
	// with ErrNotAcquired instead, if it has met one. Nodes that this client is still
	// removing count like those of other clients. So TryAcquire may fail for a free lock,
	// after a wait that was cancelled or while a release is pending.
	//
	// It may wait for a session and for replies of the ensemble, also for those that
	// another goroutine of the client has asked for. In an outage it fails with
	// ErrUnavailable: a quarter of connect_timeout after the connection was lost, or the first
	// session was asked for, but not before a second has passed. Later it fails at once.
	TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)

	lock() *lockable
}

// Do acquires a and calls fn with the lock, and with a context that carries the lock and ends
// with it. It releases the lock when fn has returned or panicked, even if ctx has ended by then.
//
// If fn was not called, the error is that of Acquire; a nil a or fn is an error that
// matches [ErrMisuse]. Otherwise Do returns fn's error. If the lock was lost while fn
// ran, the error also matches [ErrLost], whatever fn returned: another client may have
// held the lock at the same time. If fn returned the end of a context that [WithMaxHold] has ended, the error matches
// [ErrMaxHold]. A release that is still pending when Do returns is
// logged and is not an error; see [ErrReleasePending].
func Do(ctx context.Context, a Acquirer, fn func(ctx context.Context, lock *Lock) error, opts ...AcquireOption) (err error) {
	if a == nil {
		return &Error{Op: "acquire", Err: errNilAcquirer}
	}
	if fn == nil {
		return &Error{Op: "acquire", Name: queue.Truncate(a.Name(), queue.MaxName), Err: errNilFunction}
	}
	lock, err := a.Acquire(ctx, opts...)
	if err != nil {
		return err
	}
	inner, cancel := lock.Context(ctx)
	defer cancel()
	defer func() {
		released := lock.Release(context.WithoutCancel(ctx)) // waits no longer than a session timeout
		if errors.Is(released, ErrReleased) && errors.Is(lock.Err(), ErrLost) {
			released = lock.Err() // fn has released the lock after the loss
		}
		err = errs.Bounded(inner, err, ErrMaxHold)
		switch {
		case released == nil, errors.Is(released, ErrReleasePending): // release has logged it
		case errors.Is(released, ErrLost) && errors.Is(err, lock.Err()): // fn has returned this loss
		case err == nil:
			err = released
		default:
			err = fmt.Errorf("%w; the function returned: %w", released, err)
		}
	}()
	return fn(inner, lock)
}
