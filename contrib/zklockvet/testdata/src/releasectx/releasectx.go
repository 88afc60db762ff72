package releasectx

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

func deferred(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(ctx) // want `ctx bounded the wait for the lock, and may have ended: use context.WithoutCancel\(ctx\)`
	return nil
}

func inLiteral(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		_ = lock.Release(ctx) // want `ctx bounded the wait`
	}()
	return nil
}

type stream interface{ Context() context.Context }

func handler(s stream, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(s.Context())
	if err != nil {
		return err
	}
	defer lock.Release(s.Context()) // want `s.Context\(\) bounded the wait`
	return nil
}

func signals(mutex *zklock.Mutex) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(ctx) // want `ctx bounded the wait`
	return nil
}

func timeout(ctx context.Context, mutex *zklock.Mutex) error {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock, err := mutex.Acquire(wait)
	if err != nil {
		return err
	}
	return lock.Release(wait) // want `wait bounded the wait for the lock, and may have ended`
}

func ofLock(ctx context.Context, lock *zklock.Lock) error {
	held, cancel := lock.Context(ctx)
	defer cancel()
	return lock.Release(held) // want `held ends when the lock is released: use context.WithoutCancel\(held\)`
}

func early(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(ctx context.Context, lock *zklock.Lock) error {
		return lock.Release(ctx) // want `ctx ends when the lock is released or lost: use context.WithoutCancel\(ctx\)`
	})
}

func lead(ctx context.Context, e *election.Election) error {
	term, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	defer term.Resign(ctx) // want `ctx bounded the wait`
	return nil
}

func helper(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := acquire(ctx, mutex)
	if err != nil {
		return err
	}
	defer lock.Release(ctx) // want `ctx bounded the wait`
	return nil
}

func acquire(ctx context.Context, mutex *zklock.Mutex) (*zklock.Lock, error) {
	return mutex.Acquire(ctx)
}

// Nothing below is a mistake.

func right(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return nil
}

func ownTimeout(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = lock.Release(end)
	}()
	return nil
}

func ownEnd(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	end, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return lock.Release(end)
}

func endless(mutex *zklock.Mutex) error {
	ctx := context.Background()
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return nil
}

func atOnce(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	return lock.Release(ctx) // the caller may give up here
}

type service struct{ lock *zklock.Lock }

func (s *service) shutdown(ctx context.Context) error {
	defer s.lock.Release(ctx) // ctx bounds the shutdown
	return nil
}

func rejoin(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(ctx context.Context, lock *zklock.Lock) error {
		ctx = context.WithoutCancel(ctx)
		return lock.Release(ctx)
	})
}
