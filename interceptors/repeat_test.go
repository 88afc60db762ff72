package interceptors_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
)

// A client with a retry policy for locks in use and for outages. gRPC itself repeats the calls.
const repeats = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["ABORTED", "UNAVAILABLE"]}}]}`

// Work that may be done is repeated by no retry policy for locks in use, unless WithLostCode says so.
func TestLostWorkIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		opts []interceptors.Option
		code codes.Code
		runs int
	}{
		"by default":                     {nil, codes.FailedPrecondition, 1},
		"with a code":                    {[]interceptors.Option{interceptors.WithLostCode(codes.DataLoss)}, codes.DataLoss, 1},
		"with the code of a lock in use": {[]interceptors.Option{interceptors.WithLostCode(codes.Aborted)}, codes.Aborted, 3},
		"in use is FailedPrecondition":   {[]interceptors.Option{interceptors.WithCode(codes.FailedPrecondition)}, codes.Aborted, 3},
	} {
		for _, fails := range []bool{false, true} {
			w := newWorld(t)
			runs := 0
			conn := serve(t, &shop{pay: func(ctx context.Context, m *text) (*text, error) {
				defer w.Watch(ctx)()
				runs++
				w.Lose(ctx)
				if fails {
					return nil, ctx.Err()
				}
				return m, nil
			}}, append(onServer(w.fixed, c.opts...), grpc.WithDefaultServiceConfig(repeats))...)
			_, err := newShop(conn).Pay(t.Context(), &text{Value: "42"})
			if status.Code(err) != c.code || interceptors.Reason(err) != interceptors.ReasonLost || runs != c.runs {
				t.Errorf("%s, the handler fails %v: it ran %d times, %v; want %d times and %v", name, fails, runs, err, c.runs, c.code)
			}
		}
	}
}

func TestBadLostCode(t *testing.T) {
	for _, code := range []codes.Code{codes.OK, codes.Unauthenticated + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("WithLostCode(%v) did not panic", code)
				}
			}()
			interceptors.WithLostCode(code)
		}()
	}
}
