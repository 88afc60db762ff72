package outerctx

import (
	"context"
	"log/slog"
	"time"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/once"
)

func charge(ctx context.Context, token zklock.Token) error { return nil }

func serve(ctx context.Context) error { return nil }

func userFromContext(ctx context.Context) string { return "" }

func named(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(held context.Context, lock *zklock.Lock) error {
		if err := serve(held); err != nil {
			return err
		}
		return charge(ctx, lock.Token()) // want `ctx does not end when the lock of zklock.Do is lost: use held`
	})
}

func unnamed(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(_ context.Context, lock *zklock.Lock) error {
		return charge(ctx, lock.Token()) // want `ctx does not end when the lock of zklock.Do is lost: use the context that the function gets`
	})
}

func derived(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(held context.Context, _ *zklock.Lock) error {
		work, cancel := context.WithTimeout(ctx, time.Second) // want `ctx does not end when the lock of zklock.Do is lost: use held`
		defer cancel()
		return serve(work)
	})
}

// otherwise cannot be fixed by giving the parameter a name: that would change what ctx.Err() means.
func otherwise(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(_ context.Context, _ *zklock.Lock) error {
		if ctx.Err() == nil {
			return serve(ctx) // want `ctx does not end`
		}
		return nil
	})
}

// shadowed cannot be fixed: held is something else there.
func shadowed(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(held context.Context, _ *zklock.Lock) error {
		for _, held := range []string{"a", "b"} {
			if err := serve(ctx); err != nil || held == "" { // want `ctx does not end`
				return err
			}
		}
		return nil
	})
}

type server struct {
	base   context.Context
	client *zklock.Client
}

func (s *server) field(ctx context.Context) error {
	return zklock.Do(ctx, s.client.Mutex("orders"), func(held context.Context, _ *zklock.Lock) error {
		return serve(s.base) // want `s.base does not end when the lock of zklock.Do is lost: use held`
	})
}

func (s *server) method(ctx context.Context) error {
	return zklock.Do(ctx, s.client.Mutex("orders"), s.pay)
}

func (s *server) pay(ctx context.Context, lock *zklock.Lock) error {
	if err := serve(s.base); err != nil { // want `s.base does not end when the lock of zklock.Do is lost: use ctx`
		return err
	}
	return charge(ctx, lock.Token())
}

func nested(ctx context.Context, a, b *zklock.Mutex) error {
	return zklock.Do(ctx, a, func(first context.Context, _ *zklock.Lock) error {
		return zklock.Do(first, b, func(second context.Context, _ *zklock.Lock) error {
			if err := serve(ctx); err != nil { // want `ctx does not end when the lock of zklock.Do is lost: use second`
				return err
			}
			return serve(first) // want `first does not end when the lock of zklock.Do is lost: use second`
		})
	})
}

func variable(ctx context.Context, mutex *zklock.Mutex) error {
	work := func(held context.Context, _ *zklock.Lock) error {
		return serve(ctx) // want `ctx does not end when the lock of zklock.Do is lost: use held`
	}
	return zklock.Do(ctx, mutex, work)
}

func lookup(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(held context.Context, _ *zklock.Lock) error {
		lock, _ := zklock.FromContext(ctx) // want `ctx does not end when the lock of zklock.Do is lost: use held`
		return charge(held, lock.Token())
	})
}

func runners(ctx context.Context, client *zklock.Client, e *election.Election, elector *gocronlock.Elector) {
	_, _ = once.Do(ctx, client, "report", "1", func(held context.Context) error {
		return serve(ctx) // want `ctx does not end when the lock of once.Do is lost: use held`
	})
	_ = once.Every(ctx, client, "report", time.Hour, func(held context.Context, _ time.Time) error {
		return serve(ctx) // want `ctx does not end when the lock of once.Every is lost: use held`
	})
	_ = e.Run(ctx, func(term context.Context, _ *election.Term) error {
		return serve(ctx) // want `ctx does not end when the lock of Election.Run is lost: use term`
	})
	_ = gocronlock.Once(client, "report", time.Hour, func(held context.Context) error {
		return serve(ctx) // want `ctx does not end when the lock of gocronlock.Once is lost: use held`
	})
	_ = elector.Do(ctx, func(held context.Context) error {
		return serve(ctx) // want `ctx does not end when the lock of Elector.Do is lost: use held`
	})
}

// Nothing below is a mistake.

func right(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(ctx context.Context, lock *zklock.Lock) error {
		return charge(ctx, lock.Token())
	})
}

func onPurpose(ctx context.Context, client *zklock.Client, done chan error) error {
	return zklock.Do(ctx, client.Mutex("orders"), func(held context.Context, lock *zklock.Lock) error {
		go serve(ctx)
		defer serve(ctx)
		context.AfterFunc(held, func() { serve(ctx) })
		slog.InfoContext(ctx, "paying", "user", userFromContext(ctx))
		_ = client.Ping(ctx)
		if err := charge(context.WithoutCancel(ctx), lock.Token()); err != nil {
			return serve(ctx)
		}
		switch err := charge(held, lock.Token()); {
		case err != nil:
			return serve(ctx)
		}
		select {
		case <-held.Done():
			return serve(ctx)
		case err := <-done:
			return err
		}
	})
}

func reassigned(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(held context.Context, _ *zklock.Lock) error {
		ctx = held
		return serve(ctx)
	})
}

func withLock(ctx context.Context, lock *zklock.Lock) error { return nil }

func passed(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(_ context.Context, lock *zklock.Lock) error {
		return withLock(ctx, lock) // it derives its context from the lock
	})
}

func ofLock(ctx context.Context, mutex *zklock.Mutex) error {
	return zklock.Do(ctx, mutex, func(_ context.Context, lock *zklock.Lock) error {
		work, cancel := lock.Context(ctx)
		defer cancel()
		return serve(work)
	})
}
