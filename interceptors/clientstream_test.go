package interceptors_test

import (
	"context"
	"fmt"
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

// bothWays runs a test of a client's stream twice: with a lock that is acquired at the
// stream's start, and with one that is acquired with its first message.
func bothWays(t *testing.T, test func(t *testing.T, w *world, opts ...interceptors.Option)) {
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("first message %v", first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newWorld(t), firstIf(first)...) })
		})
	}
}

// echo replies to each message with one, and returns when the client ends the stream.
func echo(stream grpc.BidiStreamingServer[text, text]) error {
	for {
		o, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&text{Value: o.GetValue()}); err != nil {
			return err
		}
	}
}

func TestClientStreamIsGivenBackAtItsEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
		client := newShop(serve(t, &shop{chat: echo}, onClient(w.fixed, opts...)...))
		stream, err := client.Chat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := stream.Send(&text{}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			w.wantHeld()
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		w.wantHeld()
		if _, err := stream.Recv(); err != io.EOF {
			t.Errorf("the end is %v, want io.EOF", err)
		}
		if held := w.client.Stats().Held; held != 0 {
			t.Error("the lock is held after the end of the stream")
		}
		if _, err := stream.Recv(); err != io.EOF {
			t.Errorf("after the end: %v, want io.EOF", err)
		}
	})
}

func TestClientStreamIsGivenBackAtAnError(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
		client := newShop(serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
			_, _ = stream.Recv()
			return status.Error(codes.NotFound, "no such order")
		}}, onClient(w.fixed, opts...)...))
		stream, err := client.Chat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&text{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.NotFound {
			t.Errorf("the end is %v, want NotFound", err)
		}
		if held := w.client.Stats().Held; held != 0 {
			t.Error("the lock is held after the end of the stream")
		}
	})
}

func TestClientStreamIsGivenBackAtItsOneAnswer(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
		client := newShop(serve(t, &shop{upload: func(stream grpc.ClientStreamingServer[text, text]) error {
			n := 0
			for ; ; n++ {
				if _, err := stream.Recv(); err == io.EOF {
					return stream.SendAndClose(&text{Value: fmt.Sprint(n)})
				} else if err != nil {
					return err
				}
			}
		}}, onClient(w.fixed, opts...)...))
		stream, err := client.Upload(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := stream.Send(&text{}); err != nil {
				t.Fatal(err)
			}
			w.wantHeld()
		}
		r, err := stream.CloseAndRecv()
		if err != nil || r.GetValue() != "3" {
			t.Errorf("reply %v, error %v", r, err)
		}
		if held := w.client.Stats().Held; held != 0 {
			t.Error("the lock is held after the end of the stream")
		}
	})
}

func TestClientStreamThatIsAbandonedIsGivenBackWithItsContext(t *testing.T) {
	for _, end := range []string{"canceled", "deadline"} {
		t.Run(end, func(t *testing.T) {
			bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
				client := newShop(serve(t, &shop{chat: echo}, onClient(w.fixed, opts...)...))
				ctx, cancel := context.WithCancel(t.Context())
				if end == "deadline" {
					ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
				}
				defer cancel()
				stream, err := client.Chat(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.Send(&text{}); err != nil {
					t.Fatal(err)
				}
				w.wantHeld()
				if end == "canceled" {
					cancel()
				} else {
					time.Sleep(time.Hour)
				}
				synctest.Wait()
				if held := w.client.Stats().Held; held != 0 {
					t.Error("the lock is held after the end of the context")
				}
			})
		})
	}
}

func TestClientStreamIsGivenBackWhenItsConnectionIsClosed(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
		conn := serve(t, &shop{chat: echo}, onClient(w.fixed, opts...)...)
		stream, err := newShop(conn).Chat(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&text{}); err != nil {
			t.Fatal(err)
		}
		w.wantHeld()
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if held := w.client.Stats().Held; held != 0 {
			t.Error("the lock is held after the connection was closed")
		}
	})
}

func TestClientStreamIsGivenBackWhenItCannotBeOpened(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
		opts2 := append(onClient(w.fixed, opts...), grpc.WithDefaultCallOptions(grpc.CallContentSubtype("no-such-codec")))
		err := chat(t.Context(), serve(t, &shop{}, opts2...))
		if status.Code(err) != codes.Internal || interceptors.Reason(err) != "" {
			t.Errorf("error %v, want gRPC's own Internal", err)
		}
		if len(w.Locks()) != 1 || w.client.Stats().Held != 0 {
			t.Errorf("%d locks were acquired, %d are held; want 1 and 0", len(w.Locks()), w.client.Stats().Held)
		}
	})
}

func TestClientStreamIsGivenBackWhenItCannotSend(t *testing.T) {
	t.Run("a value that is not a message", func(t *testing.T) {
		bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
			stream, err := newShop(serve(t, &shop{chat: echo}, onClient(w.fixed, opts...)...)).Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.SendMsg("no message"); status.Code(err) != codes.Internal {
				t.Errorf("SendMsg: %v, want Internal", err)
			}
			if len(w.Locks()) != 1 || w.client.Stats().Held != 0 {
				t.Errorf("%d locks were acquired, %d are held; want 1 and 0", len(w.Locks()), w.client.Stats().Held)
			}
		})
	})
	t.Run("after the server has ended the stream", func(t *testing.T) {
		bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
			stream, err := newShop(serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				for range 3 {
					if err := stream.Send(&text{}); err != nil {
						t.Error(err)
					}
				}
				return status.Error(codes.NotFound, "no such order")
			}}, onClient(w.fixed, opts...)...)).Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				err = stream.Send(&text{})
				synctest.Wait()
			}
			if err != io.EOF {
				t.Errorf("Send: %v, want io.EOF", err)
			}
			if held := w.client.Stats().Held; held != 0 {
				t.Error("the lock is held after the server has ended the stream")
			}
			// The messages that the server has sent still arrive, and then the status.
			for range 3 {
				if _, err := stream.Recv(); err != nil {
					t.Error(err)
				}
			}
			if _, err := stream.Recv(); status.Code(err) != codes.NotFound {
				t.Errorf("the end is %v, want NotFound", err)
			}
		})
	})
}

func TestClientStreamIsGivenBackWhenThereIsNoHeader(t *testing.T) {
	for _, code := range []codes.Code{codes.OK, codes.NotFound} {
		t.Run(code.String(), func(t *testing.T) {
			bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
				stream, err := newShop(serve(t, &shop{chat: func(grpc.BidiStreamingServer[text, text]) error {
					return status.Error(code, "at once")
				}}, onClient(w.fixed, opts...)...)).Chat(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = stream.Send(&text{}) // fails if the server has ended the stream already
				if md, err := stream.Header(); md != nil || err != nil {
					t.Errorf("Header: %v, %v; want neither header nor error", md, err)
				}
				if held := w.client.Stats().Held; held != 0 {
					t.Error("the lock is held after Header has found the end of the stream")
				}
				if _, err := stream.Recv(); code == codes.OK && err != io.EOF || code != codes.OK && status.Code(err) != code {
					t.Errorf("the end is %v, want %v", err, code)
				}
			})
		})
	}
}

func TestHeaderOfALivingStreamReleasesNothing(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, opts ...interceptors.Option) {
		stream, err := newShop(serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
			if err := stream.SendHeader(metadata.Pairs("a", "b")); err != nil {
				return err
			}
			return echo(stream)
		}}, onClient(w.fixed, opts...)...)).Chat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&text{}); err != nil {
			t.Fatal(err)
		}
		if md, err := stream.Header(); err != nil || md.Get("a")[0] != "b" {
			t.Errorf("Header: %v, %v", md, err)
		}
		if l, ok := zklock.FromContext(stream.Context()); !ok || l.Name() != "orders/42" {
			t.Error("the stream's context does not carry the lock")
		}
		w.wantHeld()
		_ = stream.CloseSend()
		if err := drain[text](stream); err != nil {
			t.Error(err)
		}
	})
}
