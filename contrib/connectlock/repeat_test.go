package connectlock_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A lost lock has another code than one that is in use, so that a retry policy for locks in use repeats no
// work that may be done.
func TestLostWorkHasACodeOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		opts []connectlock.Option
		code connect.Code
	}{
		"by default":                    {nil, connect.CodeFailedPrecondition},
		"with a code":                   {[]connectlock.Option{connectlock.WithLostCode(connect.CodeDataLoss)}, connect.CodeDataLoss},
		"in use is failed_precondition": {[]connectlock.Option{connectlock.WithCode(connect.CodeFailedPrecondition)}, connect.CodeAborted},
	} {
		client, e := zklocktest.New(t)
		s := serve(t, shop{pay: func(ctx context.Context, m *text) (*text, error) {
			e.ExpireAll()
			<-ctx.Done()
			return m, nil
		}}, connectlock.HandlerInterceptor(fixed(client), c.opts...))
		_, err := call(t.Context(), s.pay, "x")
		t.Log(name)
		wantError(t, err, c.code, connectlock.ReasonLost)
	}
}
