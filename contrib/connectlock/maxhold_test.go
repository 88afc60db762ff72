package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// WithMaxHold ends the context of a handler's stream, and a Receive that waits for the client.
// It releases nothing before the handler returns. The call has the same error whether the
// handler returns that of Receive or that of its context.
func TestStreamMaxHold(t *testing.T) {
	for what, opts := range starts {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/Receive's error: %v", what, own), func(t *testing.T) {
				c, e := zklocktest.New(t)
				s := serve(t, shop{chat: func(ctx context.Context, s *connect.BidiStream[text, text]) error {
					var err error
					for err == nil { // the client sends one message
						_, err = s.Receive()
					}
					if !errors.Is(err, zklock.ErrMaxHold) || context.Cause(ctx) != zklock.ErrMaxHold {
						t.Errorf("Receive: %v, the context ended with %v, want ErrMaxHold twice", err, context.Cause(ctx))
					}
					wantTaken(t, e)
					if own {
						return err
					}
					return ctx.Err()
				}}, connectlock.HandlerInterceptor(fixed(c), append(opts, connectlock.WithMaxHold(time.Millisecond))...))
				talk := s.chat.CallBidiStream(t.Context())
				// A message that is late finds the stream ended. Receive has the reason.
				if err := talk.Send(wrapperspb.String("x")); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				_, err := talk.Receive()
				wantError(t, err, connect.CodeDeadlineExceeded, "")
				_ = talk.CloseRequest()
				_ = talk.CloseResponse()
				wantFree(t, e)
			})
		}
	}
}

// WithMaxHold ends a client's calls.
func TestClientMaxHold(t *testing.T) {
	c, e := zklocktest.New(t)
	s := serve(t, shop{
		pay: func(ctx context.Context, _ *text) (*text, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		watch: func(ctx context.Context, _ *text, _ *connect.ServerStream[text]) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(fixed(c), connectlock.WithMaxHold(time.Millisecond))))
	_, unary := call(t.Context(), s.pay, "x")
	down, stream := s.watch.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
	if stream == nil {
		if down.Receive() {
			t.Errorf("received %v", down.Msg())
		}
		stream = down.Err()
	}
	for what, err := range map[string]error{"unary": unary, "stream": stream} {
		t.Run(what, func(t *testing.T) {
			wantError(t, err, connect.CodeDeadlineExceeded, "")
			if !errors.Is(err, zklock.ErrMaxHold) {
				t.Errorf("%v, want one that matches ErrMaxHold", err)
			}
		})
	}
	wantFree(t, e)
}
