package interceptors_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// recovering returns outer interceptors that recover panics.
func recovering(w *world) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	recovered := func(err *error) {
		if v := recover(); v != nil {
			if held := w.client.Stats().Held; held != 0 {
				w.t.Errorf("%d locks are held when the panic is recovered, want none", held)
			}
			*err = status.Errorf(codes.Internal, "recovered %v", v)
		}
	}
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
			defer recovered(&err)
			return h(ctx, req)
		}, func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
			defer recovered(&err)
			return h(srv, ss)
		}
}

func TestPanicReleasesAndGoesOn(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "first message"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				unary, stream := recovering(w)
				conn := serve(t, &shop{
					pay: func(ctx context.Context, _ *text) (*text, error) {
						defer w.Watch(ctx)()
						panic("boom")
					},
					chat: func(stream grpc.BidiStreamingServer[text, text]) error {
						if _, err := stream.Recv(); err != nil {
							t.Error(err)
						}
						defer w.Watch(stream.Context())()
						panic("boom")
					},
				},
					grpc.ChainUnaryInterceptor(unary, interceptors.UnaryServerInterceptor(w.fixed)),
					grpc.ChainStreamInterceptor(stream, interceptors.StreamServerInterceptor(w.fixed, firstIf(kind == "first message")...)))
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(t.Context(), &text{})
				} else {
					err = chat(t.Context(), conn)
				}
				if status.Convert(err).Message() != "recovered boom" {
					t.Errorf("the client got %v, want the recovered panic", err)
				}
				if len(w.Locks()) != 1 {
					t.Errorf("%d locks were acquired, want 1", len(w.Locks()))
				}
			})
		})
	}
}

func TestHandlerMayReleaseEarly(t *testing.T) {
	for _, first := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				if _, err := stream.Recv(); err != nil {
					t.Error(err)
				}
				l, _ := zklock.FromContext(stream.Context())
				if err := l.Release(context.WithoutCancel(stream.Context())); err != nil {
					t.Error(err)
				}
				if err := stream.Send(&text{}); err != nil {
					t.Errorf("Send after the release: %v", err)
				}
				if _, err := stream.Recv(); err != io.EOF {
					t.Errorf("Recv after the release: %v, want io.EOF", err)
				}
				return nil
			}}, onServer(w.fixed, firstIf(first)...)...)
			stream, err := newShop(conn).Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&text{}); err != nil {
				t.Error(err)
			}
			time.AfterFunc(time.Second, func() { _ = stream.CloseSend() }) // so that Recv has to wait
			if err := drain[text](stream); err != nil {
				t.Error(err)
			}
			// released counts the handler's release and the interceptor's.
			w.WantReleasedOnce()
		})
	}
}

// TestStreamHoldsToItsEnd keeps a stream of each kind open, and checks that its lock
// cannot be acquired.
func TestStreamHoldsToItsEnd(t *testing.T) {
	for _, first := range []bool{false, true} {
		for _, kind := range []string{"upload", "watch", "chat"} {
			t.Run(fmt.Sprintf("%s, first message %v", kind, first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					hold := func(ctx context.Context) {
						defer w.Watch(ctx)()
						time.Sleep(time.Minute)
						w.wantHeld()
					}
					conn := serve(t, &shop{
						upload: func(stream grpc.ClientStreamingServer[text, text]) error {
							for {
								_, err := stream.Recv()
								if err == io.EOF {
									return stream.SendAndClose(&text{})
								}
								if err != nil {
									return err
								}
								hold(stream.Context())
							}
						},
						watch: func(_ *text, stream grpc.ServerStreamingServer[text]) error {
							for range 3 {
								hold(stream.Context())
								if err := stream.Send(&text{}); err != nil {
									return err
								}
							}
							return nil
						},
						chat: func(stream grpc.BidiStreamingServer[text, text]) error {
							for {
								_, err := stream.Recv()
								if err == io.EOF {
									return nil
								}
								if err != nil {
									return err
								}
								hold(stream.Context())
								if err := stream.Send(&text{}); err != nil {
									return err
								}
							}
						},
					}, onServer(w.fixed, firstIf(first)...)...)
					if err := runStream(t.Context(), conn, kind, 3); err != nil {
						t.Error(err)
					}
					if len(w.Locks()) != 1 {
						t.Errorf("%d locks were acquired, want one for the stream", len(w.Locks()))
					}
					if held := w.client.Stats().Held; held != 0 {
						t.Errorf("%d locks are held after the client has seen the end, want none", held)
					}
				})
			})
		}
	}
}

// runStream runs a stream of a kind to its end. The client sends n messages if the kind
// allows that.
func runStream(ctx context.Context, conn *grpc.ClientConn, kind string, n int) error {
	client := newShop(conn)
	switch kind {
	case "upload":
		stream, err := client.Upload(ctx)
		if err != nil {
			return err
		}
		for range n {
			if err := stream.Send(&text{Value: "42"}); err != nil {
				break // CloseAndRecv returns the error
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	case "watch":
		stream, err := client.Watch(ctx, &text{Value: "42"})
		if err != nil {
			return err
		}
		return drain[text](stream)
	}
	stream, err := client.Chat(ctx)
	if err != nil {
		return err
	}
	for range n {
		if err := stream.Send(&text{Value: "42"}); err != nil {
			break // Recv returns the error
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return drain[text](stream)
}

func TestClientThatHangsUpWhileTheHandlerRunsReleasesNothing(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "first message"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				left := make(chan struct{})
				stay := func(ctx context.Context) {
					defer close(left)
					defer w.Watch(ctx)()
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
						t.Errorf("the context's cause is %v, want context.Canceled", cause)
					}
					time.Sleep(time.Minute)
					w.wantHeld()
					if l, ok := zklock.FromContext(ctx); !ok || !l.Valid() {
						t.Error("the lock was released when the client disconnected")
					}
				}
				conn := serve(t, &shop{
					pay: func(ctx context.Context, _ *text) (*text, error) {
						stay(ctx)
						return &text{}, nil
					},
					chat: func(stream grpc.BidiStreamingServer[text, text]) error {
						if _, err := stream.Recv(); err != nil {
							t.Error(err)
						}
						stay(stream.Context())
						return nil
					},
				}, onServer(w.fixed, firstIf(kind == "first message")...)...)
				ctx, hangUp := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, hangUp)
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(ctx, &text{})
				} else {
					err = chat(ctx, conn)
				}
				if status.Code(err) != codes.Canceled {
					t.Errorf("the client got %v, want Canceled", err)
				}
				<-left
			})
		})
	}
}
