package connectlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// By default a call's label is its procedure.
func TestLabel(t *testing.T) {
	for what, x := range map[string]struct {
		opts []connectlock.Option
		want string
	}{
		"default": {nil, pay},
		"none":    {[]connectlock.Option{connectlock.WithLabel(nil)}, ""},
		"mine":    {[]connectlock.Option{connectlock.WithLabel(func(context.Context, connectlock.Call) string { return "mine" })}, "mine"},
	} {
		t.Run(what, func(t *testing.T) {
			c, _ := zklocktest.New(t)
			s := serve(t, shop{pay: func(ctx context.Context, _ *text) (*text, error) {
				found, err := c.Contenders(ctx, "orders/42")
				if err != nil || len(found) != 1 {
					return nil, errors.Join(err, errors.New("want one contender"))
				}
				return wrapperspb.String(found[0].Label), nil
			}}, connectlock.HandlerInterceptor(fixed(c), x.opts...))
			if got, err := call(t.Context(), s.pay, "x"); err != nil || got != x.want {
				t.Errorf("the label is %q, %v, want %q", got, err, x.want)
			}
		})
	}
}

// A call waits ten seconds for its lock by default.
func TestWait(t *testing.T) {
	for want, opts := range map[time.Duration][]connectlock.Option{
		10 * time.Second: nil,
		3 * time.Second:  {connectlock.WithWait(3 * time.Second)},
		0:                {connectlock.WithWait(0)},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, e := zklocktest.New(t)
			elsewhere(t, e)
			began := time.Now()
			err := within(t.Context(), connectlock.HandlerInterceptor(fixed(c), opts...), func(context.Context) error { return nil })
			wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")
			if waited := time.Since(began); waited != want {
				t.Errorf("the call waited for %v, want %v", waited, want)
			}
		})
	}
}

// With WithAsyncRelease a call takes one round trip to the ensemble, and without it two.
func TestAsyncRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		defer e.Close()
		client, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		take := func(opts ...connectlock.Option) (took time.Duration) {
			lock := connectlock.HandlerInterceptor(fixed(client), opts...)
			for range 2 { // the first call opens the session
				began := time.Now()
				if err := within(t.Context(), lock, func(context.Context) error { return nil }); err != nil {
					t.Fatal(err)
				}
				took = time.Since(began)
				time.Sleep(time.Second)
			}
			return took
		}
		if waits, does := take(), take(connectlock.WithAcquire(zklock.WithAsyncRelease())); does > waits*2/3 {
			t.Errorf("a call took %v with WithAsyncRelease, and %v without", does, waits)
		}
		if held := client.Stats().Held; held != 0 {
			t.Errorf("%d locks are still held", held)
		}
	})
}
