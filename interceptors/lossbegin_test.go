package interceptors_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/interceptors"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// TestLostAsTheHandlerOfAStreamBegins: the lock is lost between the last look at it and the call of
// the handler. The stream is one whose lock was lost, and not one without a lock.
func TestLostAsTheHandlerOfAStreamBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		trust := func(context.Context, interceptors.Call) (string, bool) {
			for _, lock := range w.Locks() { // none when the call arrives
				w.ensemble.ExpireAll()
				<-lock.Done()
			}
			return "shop", true
		}
		conn := serve(t, &shop{watch: func(_ *text, stream grpc.ServerStreamingServer[text]) error {
			if err := stream.Send(&text{}); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("Send: %v, want ErrLost", err)
			}
			return nil
		}}, onServer(w.fixed, interceptors.WithSequencerCheck(new(fence.Guard), trust))...)
		ctx := metadata.AppendToOutgoingContext(t.Context(), fence.Key, sequencer("upstream", 11))
		wantStatus(t, runStream(ctx, conn, "watch", 1), codes.FailedPrecondition, interceptors.ReasonLost)
	})
}

// TestLostBeforeTheHandlerBeginsButNotReported: a process that was stopped after the grant does
// not call the handler.
func TestLostBeforeTheHandlerBeginsButNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, m := testworld.Unreported(t)
		pick := func(context.Context, interceptors.Call) zklock.Acquirer { return m }
		i := interceptors.UnaryServerInterceptor(pick, interceptors.WithAcquire(zklock.Reenter()))
		_, err := callUnary(ctx, i, func(context.Context, any) (any, error) {
			t.Error("the handler ran")
			return nil, nil
		})
		wantStatus(t, err, codes.Unavailable, interceptors.ReasonUnavailable)
	})
}
