package connectlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// receive opens a stream from the server, and returns the error that ends it.
func receive(ctx context.Context, c *connect.Client[text, text]) error {
	down, err := c.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("x")))
	if err != nil {
		return err
	}
	for down.Receive() {
	}
	return errors.Join(down.Err(), down.Close())
}

// A client that gives up its stream while it waits for the lock leaves the queue. One that
// gives it up later does not release the lock under the handler.
func TestStreamClientGone(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			c, e := zklocktest.New(t)
			began, end := make(chan struct{}), make(chan struct{})
			s := serve(t, shop{watch: func(ctx context.Context, _ *text, _ *connect.ServerStream[text]) error {
				close(began) // a second handler that runs would panic
				<-ctx.Done()
				<-end
				return ctx.Err()
			}}, connectlock.HandlerInterceptor(fixed(c), opts...))
			ended := make(chan error, 1)

			release := elsewhere(t, e)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ended <- receive(ctx, s.watch) }()
			eventually(t, "the stream waits", func() bool { return c.Stats().Waiting == 1 })
			cancel()
			wantError(t, <-ended, connect.CodeCanceled, "")
			eventually(t, "the stream has left the queue", func() bool { return c.Stats().Waiting == 0 })
			release()
			wantFree(t, e)

			ctx, cancel = context.WithCancel(t.Context())
			go func() { ended <- receive(ctx, s.watch) }()
			<-began
			cancel()
			<-ended
			wantTaken(t, e)
			close(end)
			wantFree(t, e)
		})
	}
}

// A client's stream that is closed while it waits for the lock was canceled: the lock that it
// waited for was not the reason.
func TestStreamClientClosedWhileWaiting(t *testing.T) {
	c, e := zklocktest.New(t)
	defer elsewhere(t, e)()
	s := serve(t, shop{}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(fixed(c))))
	talk := s.chat.CallBidiStream(t.Context())
	sent := make(chan error, 1)
	go func() { sent <- talk.Send(wrapperspb.String("x")) }()
	eventually(t, "the stream waits", func() bool { return c.Stats().Waiting == 1 })
	if err := talk.CloseResponse(); err != nil {
		t.Error(err)
	}
	wantError(t, <-sent, connect.CodeCanceled, "")
}

// A Send that waits for a slow client does not end with the lock. The call fails nevertheless.
func TestSendToASlowClient(t *testing.T) {
	for what, opts := range starts {
		t.Run(what, func(t *testing.T) {
			c, e := zklocktest.New(t)
			cause, sent := make(chan error, 1), make(chan error, 1)
			s := serve(t, shop{watch: func(ctx context.Context, _ *text, s *connect.ServerStream[text]) error {
				context.AfterFunc(ctx, func() { cause <- context.Cause(ctx) })
				sent <- s.Send(wrapperspb.String(strings.Repeat("x", 16<<20))) // more than HTTP/2 buffers
				return nil
			}}, connectlock.HandlerInterceptor(fixed(c), opts...), connect.WithAcceptCompression("gzip", nil, nil))
			down, err := s.watch.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
			if err != nil {
				t.Fatal(err)
			}
			down.ResponseHeader() // Send has begun
			e.ExpireAll()
			if err := <-cause; !errors.Is(err, zklock.ErrLost) {
				t.Errorf("the context ended with %v, want the loss", err)
			}
			if len(sent) != 0 {
				t.Error("Send has ended, want it to wait for the client")
			}
			for down.Receive() {
			}
			wantError(t, down.Err(), connect.CodeFailedPrecondition, "LOCK_LOST")
			if err := <-sent; err != nil {
				t.Errorf("Send: %v", err)
			}
			_ = down.Close()
		})
	}
}
