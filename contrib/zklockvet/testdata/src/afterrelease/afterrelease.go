package afterrelease

import (
	"context"
	"database/sql"
	"log/slog"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

func charge(ctx context.Context, token zklock.Token) error { return nil }

func passed(ctx context.Context, db *sql.DB, lock *zklock.Lock, pay func(*sql.Tx) error) error {
	if err := lock.Release(ctx); err != nil {
		return err
	}
	return fence.InTx(ctx, db, fence.PostgreSQL, lock, pay) // want `lock is used after its release on line 15: another holder may have it`
}

func token(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	_ = lock.Release(ctx)
	return charge(ctx, lock.Token()) // want `lock is used after its release on line 26: another holder may have it`
}

func onOnePath(ctx context.Context, lock *zklock.Lock, early bool) (err error) {
	if early {
		err = lock.Release(ctx)
	}
	work, cancel := lock.Context(ctx) // want `lock is used after its release on line 32: another holder may have it`
	defer cancel()
	_ = work
	if !early {
		err = lock.Release(ctx)
	}
	return err
}

// Nothing below is a mistake.

func told(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	err = lock.Release(ctx)
	slog.Info("released", "token", lock.Token(), "reason", lock.Err())
	return err
}

func again(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	for range 3 {
		if err != nil {
			return err
		}
		if err := charge(ctx, lock.Token()); err != nil {
			_ = lock.Release(ctx)
			return err
		}
		if err := lock.Release(ctx); err != nil {
			return err
		}
		lock, err = mutex.Acquire(ctx)
	}
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

func inLoop(ctx context.Context, mutex *zklock.Mutex) error {
	for {
		lock, err := mutex.Acquire(ctx)
		if err != nil {
			return err
		}
		if err := charge(ctx, lock.Token()); err != nil {
			_ = lock.Release(ctx)
			continue
		}
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
}

func deferred(ctx context.Context, lock *zklock.Lock) error {
	defer lock.Release(context.WithoutCancel(ctx))
	return charge(ctx, lock.Token())
}
