package interceptors_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// revocable are the options of these tests.
func revocable(first bool) []interceptors.Option {
	return append(firstIf(first), interceptors.WithAcquire(zklock.WithRevocable()))
}

// revoke asks the holder of the mutex that fixed picks to give it back.
func (w *world) revoke() {
	w.t.Helper()
	found, err := w.client.Contenders(context.Background(), "orders/42")
	if err != nil || len(found) != 1 {
		w.t.Errorf("contenders: %+v, %v, want one", found, err)
		return
	}
	if err := w.client.Revoke(context.Background(), "orders/42", found[0].Node, "drain"); err != nil {
		w.t.Error(err)
	}
}

// TestRevocationWakesAHandlerThatWaitsForItsClient: the handler's context and its Recv end, and the
// lock is held until the handler returns. A loss after that is noticed.
func TestRevocationWakesAHandlerThatWaitsForItsClient(t *testing.T) {
	for _, first := range []bool{false, true} {
		for _, loses := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
					if _, err := stream.Recv(); err != nil {
						return err
					}
					ctx := stream.Context()
					defer w.Watch(ctx)()
					held, _ := zklock.FromContext(ctx)
					w.revoke()
					_, err := stream.Recv()
					if !errors.Is(err, zklock.ErrRevoked) || !errors.Is(context.Cause(ctx), zklock.ErrRevoked) {
						t.Errorf("first message %v: Recv: %v, the context ended with %v, want ErrRevoked twice", first, err, context.Cause(ctx))
					}
					w.wantHeld()
					if err := stream.Send(&text{}); err != nil {
						t.Errorf("Send while the lock is held: %v", err)
					}
					if loses {
						w.ensemble.ExpireAll()
						<-held.Done()
						if err := stream.Send(&text{}); !errors.Is(err, zklock.ErrLost) {
							t.Errorf("Send after the loss: %v, want ErrLost", err)
						}
					}
					return err
				}}, onServer(w.fixed, revocable(first)...)...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := count(ctx, conn); loses {
					wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonLost)
				} else {
					wantStatus(t, err, codes.Canceled, "")
				}
			})
		}
	}
}

// TestRevocationEndsAClientsCall: the client gives up the call, and so the lock.
func TestRevocationEndsAClientsCall(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "first message"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				conn := serve(t, &shop{
					pay: func(ctx context.Context, _ *text) (*text, error) {
						w.revoke()
						<-ctx.Done()
						return nil, ctx.Err()
					},
					watch: func(_ *text, stream grpc.ServerStreamingServer[text]) error {
						w.revoke()
						// The client's RecvMsg does not look at the lock if there is a message.
						for stream.Context().Err() == nil {
							if err := stream.Send(&text{}); err != nil {
								return err
							}
							select {
							case <-time.After(time.Second):
							case <-stream.Context().Done():
							}
						}
						return stream.Context().Err()
					},
				}, onClient(w.fixed, revocable(kind == "first message")...)...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(ctx, &text{})
				} else {
					err = runStream(ctx, conn, "watch", 1)
				}
				if status.Code(err) != codes.Canceled || !errors.Is(err, zklock.ErrRevoked) {
					t.Errorf("the call ended with %v, want Canceled and ErrRevoked", err)
				}
				if n := w.client.Stats().Held; n != 0 {
					t.Errorf("%d locks are held after the call, want none", n)
				}
			})
		})
	}
}
