package interceptors_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock"
)

// answer returns what a call got.
func answer(err error) testworld.Answer {
	switch status.Code(err) {
	case codes.OK:
		return testworld.Served
	case codes.Aborted:
		return testworld.Contended
	case codes.Unavailable:
		return testworld.Unavailable
	}
	return testworld.Refused
}

// Calls that do not wait for their lock are contended only if there is another contender. In an outage
// they are refused soon, as unavailable.
func TestTries(t *testing.T) {
	t.Run("unary", func(t *testing.T) {
		testworld.CheckTries(t, func(t *testing.T, pick func() zklock.Acquirer, work func()) func() testworld.Answer {
			i := interceptors.UnaryServerInterceptor(func(context.Context, interceptors.Call) zklock.Acquirer { return pick() }, interceptors.WithWait(0))
			return func() testworld.Answer {
				_, err := callUnary(t.Context(), i, func(context.Context, any) (any, error) { work(); return nil, nil })
				return answer(err)
			}
		})
	})
	for _, first := range []bool{false, true} {
		t.Run("stream "+map[bool]string{false: "at its start", true: "after its first message"}[first], func(t *testing.T) {
			testworld.CheckTries(t, func(t *testing.T, pick func() zklock.Acquirer, work func()) func() testworld.Answer {
				i := interceptors.StreamServerInterceptor(func(context.Context, interceptors.Call) zklock.Acquirer { return pick() },
					append(firstIf(first), interceptors.WithWait(0))...)
				info := &grpc.StreamServerInfo{FullMethod: "/shop/Upload", IsClientStream: true}
				return func() testworld.Answer {
					return answer(i(nil, &pipe{ctx: t.Context()}, info, func(_ any, stream grpc.ServerStream) error {
						if err := stream.RecvMsg(nil); err != nil {
							return err
						}
						work()
						return nil
					}))
				}
			})
		})
	}
}
