package lockcontext

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Forms in which programs acquire and release.

func boundedWait(ctx context.Context, mutex *zklock.Mutex) error {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock, err := mutex.Acquire(wait)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
}

func inCondition(ctx context.Context, mutex *zklock.Mutex) {
	if lock, err := mutex.TryAcquire(ctx); err == nil {
		defer lock.Release(context.WithoutCancel(ctx))
		_ = charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
	}
	_ = charge(ctx)
}

func orElse(ctx context.Context, mutex *zklock.Mutex) error {
	if lock, err := mutex.TryAcquire(ctx); err != nil {
		return charge(ctx)
	} else {
		defer lock.Release(context.WithoutCancel(ctx))
		return charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
	}
}

func declaredBefore(ctx context.Context, mutex *zklock.Mutex) (err error) {
	var lock *zklock.Lock
	if lock, err = mutex.Acquire(ctx); err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
}

func withoutDefer(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	failed := charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
	if err := lock.Release(ctx); err != nil {
		return err
	}
	_ = charge(ctx)
	return failed
}

func inBranch(ctx context.Context, mutex *zklock.Mutex, alone bool) error {
	if !alone {
		lock, err := mutex.Acquire(ctx)
		if err != nil {
			return err
		}
		defer lock.Release(context.WithoutCancel(ctx))
	}
	return charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
}

func ofJobs(ctx context.Context, mutex *zklock.Mutex, jobs <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-jobs:
			lock, err := mutex.TryAcquire(ctx)
			if err != nil {
				continue
			}
			_ = charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
			_ = lock.Release(ctx)
		}
	}
}

func setLater(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	work, cancel := lock.Context(ctx)
	defer cancel()
	if err := charge(ctx); err != nil { // want `ctx does not end when the lock is lost: use work`
		return err
	}
	ctx = work
	return charge(ctx)
}

func ofTwo(ctx context.Context, one, two *zklock.Mutex) error {
	first, err := one.Acquire(ctx)
	if err != nil {
		return err
	}
	defer first.Release(context.WithoutCancel(ctx))
	second, err := two.Acquire(ctx)
	if err != nil {
		return err
	}
	defer second.Release(context.WithoutCancel(ctx))
	return charge(ctx) // want `ctx does not end when the lock is lost: use that of first.Context, or zklock.Do`
}

// Nothing below is a mistake.

func ifNotHeld(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.TryAcquire(ctx)
	if err == nil {
		_ = lock.Release(ctx)
		return nil
	}
	return charge(ctx)
}

func contextInBranch(ctx context.Context, mutex *zklock.Mutex, alone bool) error {
	if !alone {
		lock, err := mutex.Acquire(ctx)
		if err != nil {
			return err
		}
		defer lock.Release(context.WithoutCancel(ctx))
		var cancel context.CancelFunc
		ctx, cancel = lock.Context(ctx)
		defer cancel()
	}
	return charge(ctx)
}

func returnsInBranch(ctx context.Context, mutex *zklock.Mutex, alone bool) error {
	if !alone {
		lock, err := mutex.Acquire(ctx)
		if err != nil {
			return err
		}
		defer lock.Release(context.WithoutCancel(ctx))
		return nil
	}
	return charge(ctx)
}

func setRequest(mutex *zklock.Mutex) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lock, err := mutex.Acquire(r.Context())
		if err != nil {
			return
		}
		defer lock.Release(context.WithoutCancel(r.Context()))
		work, cancel := lock.Context(r.Context())
		defer cancel()
		r = r.WithContext(work)
		_ = charge(r.Context())
	}
}

func releasedByFunction(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	release := sync.OnceValue(func() error { return lock.Release(context.WithoutCancel(ctx)) })
	defer release()
	work, cancel := lock.Context(ctx)
	defer cancel()
	if err := charge(work); err != nil {
		return err
	}
	if err := release(); err != nil {
		return err
	}
	return charge(ctx)
}

func returnsRelease(ctx context.Context, mutex *zklock.Mutex) (func() error, error) {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	_ = charge(ctx) // the caller has the lock, and may look at it
	return func() error { return lock.Release(context.WithoutCancel(ctx)) }, nil
}

func handedOver(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	go func() {
		defer lock.Release(context.WithoutCancel(ctx))
		time.Sleep(time.Second)
	}()
	return charge(ctx)
}

type logger struct{}

func (logger) Infof(ctx context.Context, format string, args ...any) {}

func auditLogIf(ctx context.Context, err error) {}

func logged(ctx context.Context, mutex *zklock.Mutex, log logger) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	work, cancel := lock.Context(ctx)
	defer cancel()
	log.Infof(ctx, "charging")
	err = charge(work)
	auditLogIf(ctx, err)
	return err
}
