package afterrelease

import (
	"context"

	"github.com/zklock/go-zklock/zklock"
)

type job struct {
	mutex *zklock.Mutex
	lock  *zklock.Lock
	other *zklock.Lock
}

func (j *job) acquire(ctx context.Context) (err error) {
	j.lock, err = j.mutex.Acquire(ctx)
	return err
}

func (j *job) end(ctx context.Context) error {
	if err := j.lock.Release(ctx); err != nil {
		return err
	}
	return charge(ctx, j.lock.Token()) // want `j.lock is used after its release on line 21: another holder may have it`
}

func inRange(ctx context.Context, locks []*zklock.Lock) {
	for _, lock := range locks {
		_ = lock.Release(ctx)
		_ = charge(ctx, lock.Token()) // want `lock is used after its release on line 29: another holder may have it`
	}
}

func toFunction(ctx context.Context, lock *zklock.Lock) error {
	if err := lock.Release(ctx); err != nil {
		return err
	}
	return needs(ctx, lock) // want `lock is used after its release on line 35: another holder may have it`
}

func needs(ctx context.Context, lock *zklock.Lock) error { return charge(ctx, lock.Token()) }

// Nothing below is a mistake.

func (j *job) again(ctx context.Context) error {
	if err := j.lock.Release(ctx); err != nil {
		return err
	}
	_ = j.other.Token()
	if err := j.acquire(ctx); err != nil {
		return err
	}
	return charge(ctx, j.lock.Token())
}

func (j *job) swap(ctx context.Context, next *job) error {
	if err := j.lock.Release(ctx); err != nil {
		return err
	}
	j = next
	return charge(ctx, j.lock.Token())
}

func ofEach(ctx context.Context, locks []*zklock.Lock, jobs map[string]*job) {
	for _, lock := range locks {
		_ = charge(ctx, lock.Token())
		_ = lock.Release(ctx)
	}
	for _, j := range jobs {
		_ = charge(ctx, j.lock.Token())
		_ = j.lock.Release(ctx)
	}
}

func kept(ctx context.Context, locks []*zklock.Lock, byName map[string]*zklock.Lock) (released []*zklock.Lock) {
	for _, lock := range locks {
		if err := lock.Release(ctx); err == nil {
			released = append(released, lock)
			forget(byName, lock)
		}
	}
	return released
}

func forget(byName map[string]*zklock.Lock, lock *zklock.Lock) {
	for name, held := range byName {
		if held == lock {
			delete(byName, name)
		}
	}
}

func byAddress(ctx context.Context, mutex *zklock.Mutex, lock *zklock.Lock) error {
	if err := lock.Release(ctx); err != nil {
		return err
	}
	if err := reacquire(ctx, mutex, &lock); err != nil {
		return err
	}
	return charge(ctx, lock.Token())
}

func reacquire(ctx context.Context, mutex *zklock.Mutex, lock **zklock.Lock) (err error) {
	*lock, err = mutex.Acquire(ctx)
	return err
}
