package connectlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A client that does not read any longer keeps no lock for ever: WithMaxHold ends a Send that waits for it, also
// one that begins later.
func TestMaxHoldEndsASendToAFrozenClient(t *testing.T) {
	for what, opts := range starts {
		for _, pause := range []time.Duration{0, time.Minute} {
			t.Run(what+"/"+pause.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, _ := zklocktest.New(t)
					left := make(chan time.Duration, 1)
					s := shop{watch: func(_ context.Context, _ *text, s *connect.ServerStream[text]) error {
						start := time.Now()
						time.Sleep(pause)
						for {
							if err := s.Send(wrapperspb.String(strings.Repeat("x", 1<<16))); err != nil {
								if !errors.Is(err, zklock.ErrMaxHold) || connect.CodeOf(err) != connect.CodeDeadlineExceeded {
									t.Errorf("Send: %v, want ErrMaxHold and deadline_exceeded", err)
								}
								left <- time.Since(start)
								return err
							}
						}
					}}
					lock := connectlock.HandlerInterceptor(fixed(c), append(opts, connectlock.WithMaxHold(3*time.Second))...)
					client := testworld.Serve(t, &http.Server{Handler: connectlock.Handler(handler(s, lock))})
					conn, err := client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					// The client sends its request, and is frozen.
					if _, err := io.WriteString(conn, "POST "+watch+" HTTP/1.1\r\nHost: shop\r\nContent-Type: application/connect+proto\r\n"+
						"Content-Length: 8\r\n\r\n\x00\x00\x00\x00\x03\x0a\x01x"); err != nil {
						t.Fatal(err)
					}
					if held, want := <-left, max(pause, 3*time.Second)+300*time.Millisecond; held != want {
						t.Errorf("the handler returned after %v, want %v", held, want)
					}
					l, err := c.Mutex("orders/42").Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					_ = l.Release(t.Context())
				})
			})
		}
	}
}

// After the time is over, a handler can still send its last message to a client that reads.
func TestMaxHoldLeavesTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := zklocktest.New(t)
		lock := connectlock.HandlerInterceptor(fixed(c), connectlock.WithMaxHold(3*time.Second))
		client := testworld.Serve(t, &http.Server{Handler: connectlock.Handler(handler(shop{watch: func(ctx context.Context, _ *text, s *connect.ServerStream[text]) error {
			<-ctx.Done()
			return s.Send(wrapperspb.String("late"))
		}}, lock))})
		down, err := connect.NewClient[text, text](client, "http://shop"+watch).CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
		if err != nil {
			t.Fatal(err)
		}
		if !down.Receive() || down.Msg().GetValue() != "late" || down.Receive() || down.Err() != nil {
			t.Errorf("received %v, then %v", down.Msg(), down.Err())
		}
		_ = down.Close()
	})
}
