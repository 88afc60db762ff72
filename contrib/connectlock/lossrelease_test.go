package connectlock_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A handler that has lost its lock releases it itself, and ignores the error. The call fails
// nevertheless.
func TestLostThoughTheHandlerReleases(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			c, e := zklocktest.New(t)
			lose := func(ctx context.Context) {
				lock, _ := zklock.FromContext(ctx)
				e.ExpireAll()
				<-ctx.Done()
				_ = lock.Release(context.WithoutCancel(ctx))
			}
			s := serve(t, shop{
				pay: func(ctx context.Context, _ *text) (*text, error) {
					lose(ctx)
					return wrapperspb.String("done"), nil
				},
				watch: func(ctx context.Context, _ *text, _ *connect.ServerStream[text]) error {
					lose(ctx)
					return nil
				},
			}, connectlock.HandlerInterceptor(fixed(c), opts...))
			_, err := call(t.Context(), s.pay, "x")
			wantError(t, err, connect.CodeFailedPrecondition, connectlock.ReasonLost)
			wantError(t, receive(t.Context(), s.watch), connect.CodeFailedPrecondition, connectlock.ReasonLost)
		})
	}
}
