package interceptors_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// fake is a stream whose methods return the errors that a test sets.
type fake struct {
	grpc.ClientStream
	header, send, recv error
}

func (f fake) Context() context.Context     { return context.Background() }
func (f fake) Header() (metadata.MD, error) { return metadata.MD{}, f.header }
func (f fake) Trailer() metadata.MD         { return nil }
func (f fake) CloseSend() error             { return nil }
func (f fake) SendMsg(any) error            { return f.send }
func (f fake) RecvMsg(any) error            { return f.recv }

// TestFakeStreamIsGivenBackOnce: a stream ends in several ways at the same time, and its
// lock is released once.
func TestFakeStreamIsGivenBackOnce(t *testing.T) {
	boom := status.Error(codes.DataLoss, "boom")
	for _, c := range []struct {
		name string
		fake fake
	}{
		{"header", fake{header: boom}},
		{"send", fake{send: boom}},
		{"recv", fake{recv: boom}},
		{"all", fake{header: boom, send: boom, recv: boom}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
				ctx, cancel := context.WithCancel(t.Context())
				i := interceptors.StreamClientInterceptor(w.fixed, opts...)
				stream, err := i(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, nil, methodChat,
					func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
						return c.fake, nil
					})
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.SendMsg(&text{}); !errors.Is(err, c.fake.send) {
					t.Errorf("SendMsg: %v, want %v", err, c.fake.send)
				}
				switch {
				case c.fake.send != nil:
				case c.fake.header != nil:
					_, _ = stream.Header()
				default:
					_ = stream.RecvMsg(&text{})
				}
				if held := w.client.Stats().Held; held != 0 {
					t.Error("the lock is held after the error")
				}
				ended := make(chan error)
				go func() { _, err := stream.Header(); ended <- err }()
				go func() { ended <- stream.RecvMsg(&text{}) }()
				go func() { cancel(); ended <- nil }()
				for range 3 {
					if err := <-ended; err != nil && err != boom {
						t.Errorf("error %v, want %v", err, boom)
					}
				}
				synctest.Wait()
				if held := w.client.Stats().Held; held != 0 || len(w.Locks()) != 1 {
					t.Errorf("%d locks held of %d acquired, want 0 of 1", held, len(w.Locks()))
				}
				if stream.Trailer() != nil || stream.CloseSend() != nil {
					t.Error("Trailer and CloseSend do not return what the inner stream returns")
				}
			})
		})
	}
}

// TestFirstMessageOpensTheStream calls a stream's other methods before the first SendMsg.
func TestFirstMessageOpensTheStream(t *testing.T) {
	t.Run("others wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			stream, err := newShop(serve(t, &shop{chat: echo}, onClient(interceptors.ByField(w.client, "value", "orders/%s"), interceptors.WithFirstMessage())...)).Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if stream.Trailer() != nil || stream.Context() == nil {
				t.Error("before the first message: want an empty trailer and a context")
			}
			received := make(chan string)
			go func() {
				r, err := stream.Recv()
				if err != nil {
					t.Error(err)
				}
				received <- r.GetValue()
			}()
			synctest.Wait()
			if len(w.Locks()) != 0 {
				t.Error("the lock was acquired before the first message")
			}
			if err := stream.Send(&text{Value: "42"}); err != nil {
				t.Fatal(err)
			}
			if got := <-received; got != "42" {
				t.Errorf("received %q, want 42", got)
			}
			w.wantHeld()
			_ = stream.CloseSend()
			if err := drain[text](stream); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("none comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			stream, err := newShop(serve(t, &shop{}, onClient(interceptors.ByField(w.client, "value", "orders/%s"), interceptors.WithFirstMessage())...)).Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
			_, err = stream.Recv()
			wantStatus(t, err, codes.InvalidArgument, interceptors.ReasonName)
			_, err = stream.Header()
			wantStatus(t, err, codes.InvalidArgument, interceptors.ReasonName)
			wantStatus(t, stream.SendMsg(&text{}), codes.InvalidArgument, interceptors.ReasonName)
		})
	})
	t.Run("none comes, and none is needed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			conn := serve(t, &shop{chat: echo}, onClient(w.fixed, interceptors.WithFirstMessage())...)
			if err := runStream(t.Context(), conn, "chat", 0); err != nil {
				t.Error(err)
			}
			if len(w.Locks()) != 1 {
				t.Errorf("%d locks were acquired, want 1", len(w.Locks()))
			}
		})
	})
	t.Run("the context ends before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			stream, err := newShop(serve(t, &shop{}, onClient(w.fixed, interceptors.WithFirstMessage())...)).Chat(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("Recv: %v, want DeadlineExceeded", err)
			}
			if _, err := stream.Header(); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("Header: %v, want DeadlineExceeded", err)
			}
		})
	})
}

func TestNilPickPassesThrough(t *testing.T) {
	for _, first := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			without := func(ctx context.Context) {
				if _, ok := zklock.FromContext(ctx); ok {
					t.Error("the context carries a lock")
				}
			}
			opts := append(onServer(interceptors.PassThrough, firstIf(first)...), onClient(interceptors.PassThrough, firstIf(first)...)...)
			conn := serve(t, &shop{
				pay: func(ctx context.Context, _ *text) (*text, error) {
					without(ctx)
					return &text{}, nil
				},
				upload: func(stream grpc.ClientStreamingServer[text, text]) error {
					_ = drain[text](stream)
					without(stream.Context())
					return stream.SendAndClose(&text{})
				},
				watch: func(_ *text, stream grpc.ServerStreamingServer[text]) error {
					without(stream.Context())
					return stream.Send(&text{})
				},
				chat: echo,
			}, opts...)
			if _, err := newShop(conn).Pay(t.Context(), &text{}); err != nil {
				t.Error(err)
			}
			for _, kind := range []string{"upload", "watch", "chat"} {
				for _, n := range []int{0, 1, 3} {
					if err := runStream(t.Context(), conn, kind, n); err != nil {
						t.Errorf("%s with %d messages: %v", kind, n, err)
					}
				}
			}
			if len(w.Locks()) != 0 {
				t.Error("a lock was acquired")
			}
		})
	}
}

// TestEndOfAnAttemptIsNotTheEndOfAStream: an inner interceptor opens a second stream when
// gRPC has finished the first. The lock is held during both.
func TestEndOfAnAttemptIsNotTheEndOfAStream(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
		attempts := 0
		again := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			first, err := streamer(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			if err := first.CloseSend(); err != nil {
				return nil, err
			}
			if err := first.RecvMsg(&text{}); err != io.EOF {
				t.Errorf("the first attempt ended with %v", err)
			}
			synctest.Wait()
			w.wantHeld()
			attempts++
			return streamer(ctx, desc, cc, method, opts...)
		}
		conn := serve(t, &shop{chat: echo}, grpc.WithChainStreamInterceptor(interceptors.StreamClientInterceptor(w.fixed, opts...), again))
		if err := runStream(t.Context(), conn, "chat", 3); err != nil || attempts != 1 {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})
}
