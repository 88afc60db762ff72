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

func TestMaxHoldCancelsAndReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		resp, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(w.fixed, interceptors.WithMaxHold(3*time.Second)),
			func(ctx context.Context, _ any) (any, error) {
				defer w.Watch(ctx)()
				start := time.Now()
				<-ctx.Done()
				if held := time.Since(start); held != 3*time.Second || context.Cause(ctx) != zklock.ErrMaxHold {
					t.Errorf("the context was cancelled after %v with cause %v, want 3s and ErrMaxHold", held, context.Cause(ctx))
				}
				time.Sleep(time.Minute)
				if l, ok := zklock.FromContext(ctx); !ok || !l.Valid() {
					t.Error("the lock is not held any more")
				}
				return "late", nil
			})
		if resp != "late" || err != nil {
			t.Errorf("reply %v, error %v: want the handler's reply", resp, err)
		}
	})
}

func TestMaxHoldEndsAStreamThatWaits(t *testing.T) {
	for i := range 4 {
		first, own := i%2 == 1, i/2 == 1
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				if _, err := stream.Recv(); err != nil {
					t.Error(err)
				}
				_, err := stream.Recv()
				if !errors.Is(err, zklock.ErrMaxHold) {
					t.Errorf("Recv: %v, want ErrMaxHold", err)
				}
				if own {
					return stream.Context().Err()
				}
				return err
			}}, onServer(w.fixed, append(firstIf(first), interceptors.WithMaxHold(time.Second))...)...)
			if _, err := count(t.Context(), conn); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("with the first message %v, the context's error %v: the client got %v, want DeadlineExceeded", first, own, err)
			}
		})
	}
}

func TestMaxHoldEndsAClientsCall(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "first message"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				conn := serve(t, &shop{
					pay: func(ctx context.Context, _ *text) (*text, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					},
					chat: func(stream grpc.BidiStreamingServer[text, text]) error {
						<-stream.Context().Done()
						return stream.Context().Err()
					},
				}, onClient(w.fixed, append(firstIf(kind == "first message"), interceptors.WithMaxHold(time.Second))...)...)
				start := time.Now()
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(t.Context(), &text{})
				} else {
					err = chat(t.Context(), conn)
				}
				if status.Code(err) != codes.DeadlineExceeded || !errors.Is(err, zklock.ErrMaxHold) || time.Since(start) != time.Second {
					t.Errorf("after %v: %v, want DeadlineExceeded and ErrMaxHold after 1s", time.Since(start), err)
				}
			})
		})
	}
}
