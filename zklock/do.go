package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Acquirer is something that can be acquired: what Client.Mutex returns, for
// example. It is there to be accepted, by Do and by the adapters, and not to be
// implemented outside this package.
type Acquirer interface {
	// Name returns the lock's name.
	Name() string

	// Acquire waits until the lock is held, ctx ends, or it cannot be had. ctx
	// bounds the wait only: cancelling it later releases nothing. On any error
	// nothing is held and nothing stays queued. An error that ctx caused matches
	// both ctx.Err() and ErrNotAcquired, or ErrUnavailable in place of the latter if
	// there was no usable session at that moment.
	Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)

	// TryAcquire is Acquire that never waits for another holder: it fails with
	// ErrNotAcquired instead. It may wait for the ensemble. Nodes of this
	// client that are still being removed count as others' do: after a wait that was
	// given up, or a release that is pending, a try may fail though nobody holds the
	// lock any more.
	TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error)
}

// Do acquires a, calls fn with a context that carries the lock and ends with it,
// and releases the lock when fn has returned or panicked, whatever has become
// of ctx by then.
//
// The error is Acquire's if fn was not called, and else fn's. A nil a or fn is an error
// at once. If the lock was
// lost while fn ran it also matches ErrLost: whatever fn returned, it may not
// have been alone. A release that the ensemble has not confirmed when Do returns,
// see ErrReleasePending, is logged and not an error.
func Do(ctx context.Context, a Acquirer, fn func(context.Context) error, opts ...AcquireOption) (err error) {
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
		// Release bounds itself by the session timeout.
		released := lock.Release(context.WithoutCancel(ctx))
		switch {
		case released == nil:
		case errors.Is(released, ErrLost) && errors.Is(err, lock.Err()): // fn has told of this very loss
		case errors.Is(released, ErrReleasePending) && !errors.Is(released, ErrLost): // which was logged
		case err == nil:
			err = released
		default:
			err = fmt.Errorf("%w; the function returned: %w", released, err)
		}
	}()
	return fn(inner)
}
