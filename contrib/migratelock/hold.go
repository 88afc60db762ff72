package migratelock

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock"
)

// errNotLocked means that there is nothing to unlock.
var errNotLocked = errors.New("it is not locked")

// hold is a lock from Lock to Unlock.
type hold struct {
	lock *zklock.Lock
	undo func() // stops what ends the context of WithLoss
}

// acquire acquires a. If ctx was made by WithLoss, ctx ends when the lock is lost.
func acquire(ctx context.Context, a zklock.Acquirer, opts []zklock.AcquireOption) (*hold, error) {
	lock, err := a.Acquire(ctx, opts...)
	if err != nil {
		return nil, err
	}
	h := &hold{lock: lock, undo: func() {}}
	if lose, ok := ctx.Value(lossKey{}).(context.CancelCauseFunc); ok {
		inner, cancel := lock.Context(context.WithoutCancel(ctx))
		stop := context.AfterFunc(inner, func() {
			if cause := context.Cause(inner); errors.Is(cause, zklock.ErrLost) {
				lose(cause)
			}
		})
		h.undo = func() { stop(); cancel() }
	}
	return h, nil
}

// giveBack releases the lock, also if ctx has ended. Release waits at most for the session
// timeout. A release that is still pending then is not an error, as with zklock.Do: the client
// goes on with it.
func (h *hold) giveBack(ctx context.Context) error {
	err := h.lock.Release(context.WithoutCancel(ctx))
	h.undo()
	if errors.Is(err, zklock.ErrReleasePending) {
		return nil
	}
	return err
}

// lossKey is the key of the function that ends a context of WithLoss.
type lossKey struct{}

// WithLoss returns a context for goose's functions, such as Provider.Up. It ends with ctx. It
// also ends when a [Locker] has lost a lock that it acquired with this context or a derived
// one; its cause (see [context.Cause]) matches [zklock.ErrLost] then. Go migrations and
// statements that watch their context are cancelled; no further migration begins.
//
// The caller must call the function that WithLoss returns when the migrations have ended.
func WithLoss(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return context.WithValue(ctx, lossKey{}, cancel), func() { cancel(context.Canceled) }
}
