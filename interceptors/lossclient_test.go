package interceptors_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// sender is a client's stream that counts what is sent, and does not look at its context.
type sender struct {
	grpc.ClientStream
	sent int
}

func (s *sender) SendMsg(any) error { s.sent++; return nil }

// A client's SendMsg looks at the lock itself, and sends nothing after the loss.
func TestClientSendsNothingAfterTheLoss(t *testing.T) {
	for _, first := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var ctx context.Context
			inner := new(sender)
			stream, err := interceptors.StreamClientInterceptor(w.fixed, firstIf(first)...)(t.Context(), &grpc.StreamDesc{ClientStreams: true}, nil, "/shop/Upload",
				func(late context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
					ctx = late
					return inner, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.SendMsg(nil); err != nil {
				t.Fatal(err)
			}
			held, _ := zklock.FromContext(ctx)
			w.ensemble.ExpireAll()
			<-held.Done()
			err = stream.SendMsg(nil)
			if status.Code(err) != codes.FailedPrecondition || !errors.Is(err, zklock.ErrLost) || inner.sent != 1 {
				t.Errorf("first message %v: %v after %d messages were sent, want FailedPrecondition and ErrLost after 1", first, err, inner.sent)
			}
		})
	}
}
