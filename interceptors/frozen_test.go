package interceptors_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// A client that does not read any longer keeps no lock for ever: WithMaxHold ends a Send that waits for it.
func TestMaxHoldEndsASendToAFrozenClient(t *testing.T) {
	for _, first := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			left := make(chan time.Duration, 1)
			conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				if _, err := stream.Recv(); err != nil {
					t.Error(err)
				}
				start := time.Now()
				for {
					if err := stream.Send(&text{Value: strings.Repeat("x", 1<<16)}); err != nil {
						if !errors.Is(err, zklock.ErrMaxHold) || status.Code(err) != codes.DeadlineExceeded {
							t.Errorf("Send: %v, want ErrMaxHold and DeadlineExceeded", err)
						}
						if again := stream.Send(&text{}); !errors.Is(again, zklock.ErrMaxHold) {
							t.Errorf("another Send: %v, want ErrMaxHold", again)
						}
						left <- time.Since(start)
						return err
					}
				}
			}}, onServer(w.fixed, append(firstIf(first), interceptors.WithMaxHold(3*time.Second))...)...)
			stream, err := newShop(conn).Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&text{Value: "42"}); err != nil {
				t.Fatal(err)
			}
			if held := <-left; held != 3300*time.Millisecond {
				t.Errorf("with the first message %v: the handler returned after %v, want 3.3s", first, held)
			}
			l, err := w.client.Mutex("orders/42").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Release(t.Context())
			if err := drain(stream); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("the client that goes on got %v, want DeadlineExceeded", err)
			}
		})
	}
}

// Nor does one that goes on reading what a handler sends for ever.
func TestMaxHoldEndsSendsToAClientThatReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		left := make(chan time.Duration, 1)
		conn := serve(t, &shop{watch: func(_ *text, stream grpc.ServerStreamingServer[text]) (err error) {
			start := time.Now()
			for err == nil && time.Since(start) < time.Minute {
				err = stream.Send(&text{Value: "news"})
				time.Sleep(100 * time.Millisecond)
			}
			if !errors.Is(err, zklock.ErrMaxHold) || !errors.Is(stream.Send(&text{}), zklock.ErrMaxHold) {
				t.Errorf("Send: %v, want ErrMaxHold", err)
			}
			left <- time.Since(start)
			return err
		}}, onServer(w.fixed, interceptors.WithMaxHold(3*time.Second))...)
		stream, err := newShop(conn).Watch(t.Context(), &text{Value: "42"})
		if err != nil {
			t.Fatal(err)
		}
		if err := drain(stream); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the client got %v, want DeadlineExceeded", err)
		}
		if held := <-left; held < 3*time.Second || held > 4*time.Second {
			t.Errorf("the handler returned after %v", held)
		}
	})
}

// After the time is over, a handler can still send its last message to a client that reads.
func TestMaxHoldLeavesTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn := serve(t, &shop{watch: func(_ *text, stream grpc.ServerStreamingServer[text]) error {
			<-stream.Context().Done()
			return stream.Send(&text{Value: "late"})
		}}, onServer(w.fixed, interceptors.WithMaxHold(3*time.Second))...)
		stream, err := newShop(conn).Watch(t.Context(), &text{Value: "42"})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := stream.Recv(); m.GetValue() != "late" || err != nil {
			t.Errorf("received %v, %v", m, err)
		}
		if err := drain(stream); err != nil {
			t.Error(err)
		}
	})
}
