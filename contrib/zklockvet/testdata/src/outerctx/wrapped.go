package outerctx

import (
	"context"
	"net/http"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// locked is a wrapper of zklock.Do.
func (s *server) locked(ctx context.Context, name string, fn func(context.Context) error) error {
	return zklock.Do(ctx, s.client.Mutex(name), func(held context.Context, _ *zklock.Lock) error {
		return fn(context.WithValue(held, name, true))
	})
}

// lockedAs is a wrapper of locked.
func (s *server) lockedAs(name string, ctx context.Context, fn func(context.Context) error) error {
	return s.locked(ctx, name, fn)
}

// typed passes the function on, and has a type parameter.
func typed[T any](ctx context.Context, mutex *zklock.Mutex, _ T, fn func(context.Context, *zklock.Lock) error) error {
	return zklock.Do(ctx, mutex, fn)
}

// before calls one function under the lock, and one without it.
func before(ctx context.Context, mutex *zklock.Mutex, free, fn func(context.Context) error) error {
	if err := free(ctx); err != nil {
		return err
	}
	return zklock.Do(ctx, mutex, func(held context.Context, _ *zklock.Lock) error { return fn(held) })
}

func (s *server) wrapped(ctx context.Context, mutex *zklock.Mutex) error {
	_ = s.locked(ctx, "orders", func(held context.Context) error {
		return serve(ctx) // want `ctx does not end when the lock of locked is lost: use held`
	})
	_ = s.lockedAs("orders", ctx, func(held context.Context) error {
		return serve(context.Background()) // want `context.Background\(\) does not end when the lock of lockedAs is lost: use held`
	})
	_ = typed(ctx, mutex, 1, func(held context.Context, lock *zklock.Lock) error {
		return charge(context.Background(), lock.Token()) // want `context.Background\(\) does not end when the lock of typed is lost: use held`
	})
	return before(ctx, mutex, func(context.Context) error { return serve(context.Background()) }, func(held context.Context) error {
		return serve(context.Background()) // want `context.Background\(\) does not end when the lock of before is lost: use held`
	})
}

type payments struct{}

func (payments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = serve(context.Background()) // want `context.Background\(\) does not end when the lock of middleware.New is lost: use r.Context\(\)`
}

func logged(next http.HandlerFunc) http.Handler { return next }

func (s *server) refund(w http.ResponseWriter, r *http.Request) {
	_ = serve(context.Background()) // want `context.Background\(\) does not end when the lock of middleware.New is lost: use r.Context\(\)`
}

func free(w http.ResponseWriter, r *http.Request) { _ = serve(context.Background()) }

func (s *server) routes(mux *http.ServeMux) {
	lock := middleware.New(middleware.ByPathValue(s.client, "id", "orders/%s"))
	mux.Handle("POST /orders/{id}/pay", lock(&payments{}))
	mux.Handle("POST /orders/{id}/refund", lock(logged(s.refund)))
	mux.Handle("GET /orders", logged(free))
}
