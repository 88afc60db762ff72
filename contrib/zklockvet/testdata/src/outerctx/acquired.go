package outerctx

import (
	"context"

	"github.com/zklock/go-zklock/zklock"
)

type repository interface {
	Save(ctx context.Context, n int) error
}

// held runs a function under a lock, as a wrapper does that has no zklock.Do.
func held[T any](ctx context.Context, mutex *zklock.Mutex, fn func(context.Context, T) error, value T) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	work, cancel := lock.Context(ctx)
	defer cancel()
	return fn(work, value)
}

func savesOutside(ctx context.Context, mutex *zklock.Mutex, r repository) error {
	return held(ctx, mutex, func(work context.Context, n int) error {
		return r.Save(ctx, n) // want `ctx does not end when the lock of held is lost: use work`
	}, 3)
}

// Nothing below is a mistake.

func savesInside(ctx context.Context, mutex *zklock.Mutex, r repository) error {
	return held(ctx, mutex, func(work context.Context, n int) error { return r.Save(work, n) }, 3)
}

func passesMethod(ctx context.Context, mutex *zklock.Mutex, r repository) error {
	return held(ctx, mutex, r.Save, 3)
}

// heldThen runs the second function behind the release.
func heldThen(ctx context.Context, mutex *zklock.Mutex, fn, then func(context.Context) error) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	work, cancel := lock.Context(ctx)
	defer cancel()
	err = fn(work)
	if released := lock.Release(ctx); err == nil {
		err = released
	}
	if err != nil {
		return err
	}
	return then(context.WithoutCancel(work))
}

func savesThen(ctx context.Context, mutex *zklock.Mutex, r repository) error {
	return heldThen(ctx, mutex, func(work context.Context) error { return r.Save(work, 1) }, func(context.Context) error { return r.Save(ctx, 2) })
}

type journal struct{}

func (journal) Errorf(ctx context.Context, format string, args ...any) {}

func logsOutside(ctx context.Context, mutex *zklock.Mutex, r repository, log journal) error {
	return zklock.Do(ctx, mutex, func(work context.Context, _ *zklock.Lock) error {
		log.Errorf(ctx, "saving")
		return r.Save(work, 1)
	})
}
