package interceptors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
)

// A log that is stuck holds up no call: neither one that is refused while it holds another lock, nor a stream
// whose receiving panics, nor the next ones.
func TestStuckLog(t *testing.T) {
	never := func(context.Context, any) (any, error) { t.Error("the handler ran"); return nil, nil }
	t.Run("a refused call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, log := newWorld(t), corekit.NewStuckLog(t)
			inner := interceptors.UnaryServerInterceptor(w.fixed, interceptors.WithLogger(log.Logger()))
			info := &grpc.UnaryServerInfo{FullMethod: "/shop/Pay"}
			for range 3 {
				log.Returns(t, "a call", time.Minute, func() {
					_, err := interceptors.UnaryServerInterceptor(w.fixed)(t.Context(), nil, info, func(ctx context.Context, _ any) (any, error) {
						return inner(ctx, nil, info, never) // it holds that lock already
					})
					wantStatus(t, err, codes.Internal, interceptors.ReasonError)
				})
			}
			w.Hold("orders/42")()
		})
	})
	for _, first := range []bool{false, true} {
		t.Run(map[bool]string{true: "a stream whose first message chooses the lock", false: "a stream"}[first], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, log := newWorld(t), corekit.NewStuckLog(t)
				lock := interceptors.StreamServerInterceptor(w.fixed, append(firstIf(first), interceptors.WithLogger(log.Logger()))...)
				info := &grpc.StreamServerInfo{FullMethod: "/shop/Upload", IsClientStream: true}
				for range 3 {
					log.Returns(t, "a stream", time.Minute, func() {
						defer func() {
							if v := recover(); v != "boom" {
								t.Errorf("recovered %v, want the panic", v)
							}
						}()
						_ = lock(nil, &pipe{ctx: t.Context(), recv: func() error { panic("boom") }}, info, func(_ any, stream grpc.ServerStream) error {
							if err := stream.RecvMsg(nil); err != nil {
								return err
							}
							return stream.RecvMsg(nil)
						})
					})
				}
				w.Hold("orders/42")()
			})
		})
	}
}
