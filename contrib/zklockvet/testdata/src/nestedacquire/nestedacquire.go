package nestedacquire

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/once"
)

func move(ctx context.Context, from, to *zklock.Mutex) error {
	return zklock.Do(ctx, from, func(held context.Context, _ *zklock.Lock) error {
		lock, err := to.Acquire(ctx) // want `ctx does not carry the lock of zklock.Do: use held, or zklock.Detach if the acquisition is not part of the work under it`
		if err != nil {
			return err
		}
		return lock.Release(context.WithoutCancel(held))
	})
}

func background(ctx context.Context, from, to *zklock.Mutex) error {
	return zklock.Do(ctx, from, func(held context.Context, _ *zklock.Lock) error {
		wait, cancel := context.WithTimeout(context.Background(), time.Second) // want `context.Background\(\) does not end when the lock of zklock.Do is lost: use held`
		defer cancel()
		lock, err := to.TryAcquire(wait) // want `wait does not carry the lock of zklock.Do: use held`
		if err != nil {
			return err
		}
		return lock.Release(context.WithoutCancel(held))
	})
}

func nestedDo(ctx context.Context, from, to *zklock.Mutex) error {
	return zklock.Do(ctx, from, func(_ context.Context, _ *zklock.Lock) error {
		return zklock.Do(ctx, to, func(_ context.Context, _ *zklock.Lock) error { return nil }) // want `ctx does not carry the lock of zklock.Do: use the context that the function gets`
	})
}

type account struct{ *zklock.Mutex }

func (a account) Acquire(ctx context.Context) (*zklock.Lock, error) { return a.Mutex.Acquire(ctx) }

func ownType(ctx context.Context, client *zklock.Client, from *zklock.Mutex, to account) error {
	return zklock.Do(ctx, from, func(held context.Context, _ *zklock.Lock) error {
		lock, err := to.Acquire(ctx) // want `ctx does not carry the lock of zklock.Do: use held`
		if err != nil {
			return err
		}
		defer lock.Release(context.WithoutCancel(held))
		_, err = once.Do(ctx, client, "report", "1", func(context.Context) error { return nil }) // want `ctx does not carry the lock of zklock.Do: use held`
		return err
	})
}

func leader(ctx context.Context, e *election.Election, mutex *zklock.Mutex) error {
	return e.Run(ctx, func(term context.Context, _ *election.Term) error {
		lock, err := mutex.Acquire(context.TODO()) // want `context.TODO\(\) does not carry the lock of Election.Run: use term`
		if err != nil {
			return err
		}
		return lock.Release(context.WithoutCancel(term))
	})
}

// Nothing below is a mistake.

func right(ctx context.Context, from, to *zklock.Mutex) error {
	return zklock.Do(ctx, from, func(ctx context.Context, _ *zklock.Lock) error {
		wait, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		lock, err := to.Acquire(wait)
		if err != nil {
			return err
		}
		return lock.Release(context.WithoutCancel(ctx))
	})
}

func detached(ctx context.Context, from, to *zklock.Mutex) error {
	return zklock.Do(ctx, from, func(held context.Context, _ *zklock.Lock) error {
		go func() {
			_ = zklock.Do(ctx, to, func(context.Context, *zklock.Lock) error { return nil })
		}()
		lock, err := to.Acquire(zklock.Detach(ctx))
		if err != nil {
			return err
		}
		return lock.Release(context.WithoutCancel(held))
	})
}
