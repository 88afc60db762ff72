package connectlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// revocable makes the locks of these tests revocable.
var revocable = connectlock.WithAcquire(zklock.WithRevocable())

// revoke asks the holder of the mutex that fixed picks to give it back.
func revoke(t *testing.T, c *zklock.Client) {
	t.Helper()
	found, err := c.Contenders(context.Background(), "orders/42")
	if err != nil || len(found) != 1 {
		t.Errorf("contenders: %+v, %v, want one", found, err)
		return
	}
	if err := c.Revoke(context.Background(), "orders/42", found[0].Node, "drain"); err != nil {
		t.Error(err)
	}
}

// A revocation ends a handler's context, and a Receive that waits for the client. The lock is held
// until the handler returns.
func TestStreamHandlerRevoked(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			c, e := zklocktest.New(t)
			s := serve(t, shop{chat: func(ctx context.Context, s *connect.BidiStream[text, text]) error {
				if _, err := s.Receive(); err != nil {
					return err
				}
				revoke(t, c)
				_, err := s.Receive() // the client sends nothing more
				if !errors.Is(err, zklock.ErrRevoked) || !errors.Is(context.Cause(ctx), zklock.ErrRevoked) {
					t.Errorf("Receive: %v, the context ended with %v, want ErrRevoked twice", err, context.Cause(ctx))
				}
				wantTaken(t, e)
				return err
			}}, connectlock.HandlerInterceptor(fixed(c), append(opts, revocable)...))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			talk := s.chat.CallBidiStream(ctx)
			if err := talk.Send(wrapperspb.String("x")); err != nil {
				t.Fatal(err)
			}
			_, err := talk.Receive()
			wantError(t, err, connect.CodeCanceled, "")
			_ = talk.CloseRequest()
			_ = talk.CloseResponse()
			wantFree(t, e)
		})
	}
}

// A revocation ends a client's calls, and gives the lock back.
func TestClientRevoked(t *testing.T) {
	c, e := zklocktest.New(t)
	s := serve(t, shop{
		pay: func(ctx context.Context, _ *text) (*text, error) {
			revoke(t, c)
			<-ctx.Done()
			return nil, ctx.Err()
		},
		watch: func(ctx context.Context, m *text, s *connect.ServerStream[text]) error {
			revoke(t, c)
			for ctx.Err() == nil { // Receive does not look at the lock if there is a message
				if err := s.Send(m); err != nil {
					return err
				}
			}
			return ctx.Err()
		},
	}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(fixed(c), revocable)))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, unary := call(ctx, s.pay, "x")
	for what, err := range map[string]error{"unary": unary, "stream": receive(ctx, s.watch)} {
		if connect.CodeOf(err) != connect.CodeCanceled || !errors.Is(err, zklock.ErrRevoked) {
			t.Errorf("%s: %v, want canceled and ErrRevoked", what, err)
		}
	}
	wantFree(t, e)
}
