package connectlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A log that is stuck holds up no call that is refused while it holds another lock, and not the next ones.
func TestStuckLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		log := corekit.NewStuckLog(t)
		inner := connectlock.HandlerInterceptor(fixed(c), connectlock.WithLogger(log.Logger()))
		for range 3 {
			log.Returns(t, "a call", time.Minute, func() {
				err := within(t.Context(), connectlock.HandlerInterceptor(fixed(c)), func(ctx context.Context) error {
					return within(ctx, inner, func(context.Context) error { // it holds that lock already
						t.Error("the handler ran")
						return nil
					})
				})
				wantError(t, err, connect.CodeInternal, "LOCK_ERROR")
			})
		}
		elsewhere(t, e)()
	})
}
