package lockcontext

import (
	"context"
	"net/http"

	"github.com/zklock/go-zklock/zklock"
)

func charge(ctx context.Context) error { return nil }

func pay(ctx context.Context, token zklock.Token) error { return nil }

func dropped(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	_, cancel := lock.Context(ctx) // want `the context of lock is dropped: pass it to the work under the lock`
	defer cancel()
	return charge(ctx)
}

func callers(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	work, cancel := lock.Context(ctx)
	defer cancel()
	if err := charge(work); err != nil {
		return charge(ctx) // the handling of a failure
	}
	if err := charge(ctx); err != nil { // want `ctx does not end when the lock is lost: use work`
		return err
	}
	return charge(context.Background()) // want `context.Background\(\) does not end when the lock is lost: use work`
}

func ofRequest(mutex *zklock.Mutex) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lock, err := mutex.Acquire(r.Context())
		if err != nil {
			return
		}
		defer lock.Release(context.WithoutCancel(r.Context()))
		work, cancel := lock.Context(r.Context())
		defer cancel()
		_ = charge(work)
		_ = charge(r.Context()) // want `r.Context\(\) does not end when the lock is lost: use work`
	}
}

func unwatched(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return charge(ctx) // want `ctx does not end when the lock is lost: use that of lock.Context, or zklock.Do`
}

// Nothing below is a mistake.

func shadowed(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	ctx, cancel := lock.Context(ctx)
	defer cancel()
	return charge(ctx)
}

func fenced(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return pay(ctx, lock.Token()) // the resource checks the token
}

type ledger struct{ lock *zklock.Lock }

func (l ledger) record(ctx context.Context) error { return nil }

func checked(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	work, cancel := lock.Context(ctx)
	defer cancel()
	l := ledger{lock: lock}
	if err := charge(work); err != nil {
		return err
	}
	if err := pay(ctx, lock.Token()); err != nil {
		return err
	}
	return l.record(ctx) // it can look at the lock
}

func after(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	work, cancel := lock.Context(ctx)
	defer cancel()
	failed := charge(work)
	if err := lock.Release(ctx); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return charge(ctx)
}

func outlives(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	work, cancel := lock.Context(ctx)
	defer cancel()
	go charge(ctx)
	<-work.Done()
	return charge(ctx)
}
