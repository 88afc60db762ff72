package connectlock_test

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// starts are the two times when a handler's stream can acquire its lock, with the options for each:
// its start, or its first message.
var starts = map[string][]connectlock.Option{"start": nil, "first message": {connectlock.WithFirstMessage()}}

// recovers is an interceptor that recovers the panics of handlers' streams.
type recovers struct{ connect.Interceptor }

func (recovers) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

func (recovers) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = connect.NewError(connect.CodeInternal, errors.New("recovered"))
			}
		}()
		return next(ctx, conn)
	}
}

// A handler's stream that panics gives its lock back, and the panic goes on.
func TestStreamPanic(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			c, e := zklocktest.New(t)
			s := serve(t, shop{watch: func(ctx context.Context, _ *text, _ *connect.ServerStream[text]) error {
				wantTaken(t, e)
				panic("broken")
			}}, chain{recovers{}, connectlock.HandlerInterceptor(fixed(c), opts...)})
			down, err := s.watch.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
			if err != nil {
				t.Fatal(err)
			}
			defer down.Close()
			if down.Receive() {
				t.Errorf("received %v", down.Msg())
			}
			wantError(t, down.Err(), connect.CodeInternal, "")
			wantFree(t, e)
		})
	}
}

// A client's stream whose Pick panics does not begin, and none of its methods waits for a
// response.
func TestStreamClientPickPanics(t *testing.T) {
	s := serve(t, shop{}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(
		func(context.Context, connectlock.Call) zklock.Acquirer { panic("broken") })))
	talk := s.chat.CallBidiStream(t.Context())
	func() {
		defer func() {
			if v := recover(); v != "broken" {
				t.Errorf("recovered %v, want the panic of the Pick", v)
			}
		}()
		_ = talk.Send(wrapperspb.String("x"))
	}()
	if _, err := talk.Receive(); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("Receive: %v, want internal", err)
	}
	if err := talk.CloseResponse(); err != nil {
		t.Error(err)
	}
}
