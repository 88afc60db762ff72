package interceptors_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// endings are what a handler may return after the loss of its lock, with the code and reason of
// the call.
var endings = []struct {
	name    string
	handler func(ctx context.Context) error
	code    codes.Code
	reason  string
}{
	{"success", func(context.Context) error { return nil }, codes.FailedPrecondition, interceptors.ReasonLost},
	{"the context's error", func(ctx context.Context) error { return ctx.Err() }, codes.FailedPrecondition, interceptors.ReasonLost},
	{"the context's cause", context.Cause, codes.FailedPrecondition, interceptors.ReasonLost},
	{"a wrapped cause", func(ctx context.Context) error { return fmt.Errorf("gave up: %w", context.Cause(ctx)) }, codes.FailedPrecondition, interceptors.ReasonLost},
	{"a status of giving up", func(context.Context) error { return status.Error(codes.Canceled, "gave up") }, codes.FailedPrecondition, interceptors.ReasonLost},
	{"a status of its own", func(context.Context) error { return status.Error(codes.NotFound, "no such order") }, codes.NotFound, ""},
	{"an error of its own", func(context.Context) error { return errors.New("no such order") }, codes.Unknown, ""},
	{"a deadline of its own", func(context.Context) error { return context.DeadlineExceeded }, codes.DeadlineExceeded, ""},
}

func TestLostDuringAUnaryCall(t *testing.T) {
	for _, c := range endings {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var own error
				resp, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(w.fixed), func(ctx context.Context, _ any) (any, error) {
					defer w.Watch(ctx)()
					w.Lose(ctx)
					own = c.handler(ctx)
					return &text{Value: "paid"}, own
				})
				wantLost(t, err, own, c.code, c.reason)
				if resp != nil && err == nil {
					t.Error("the interceptor returned a reply without an error after the loss")
				}
			})
		})
	}
}

// wantLost checks the error of a call whose lock was lost, in this process.
func wantLost(t *testing.T, err, own error, code codes.Code, reason string) {
	t.Helper()
	if !errors.Is(err, zklock.ErrLost) {
		t.Errorf("%v does not match ErrLost", err)
	}
	if own != nil && !errors.Is(err, own) {
		t.Errorf("%v does not match the handler's own %v", err, own)
	}
	if got := status.Code(err); got != code {
		t.Errorf("%v: code %v, want %v", err, got, code)
	}
	if got := interceptors.Reason(err); got != reason {
		t.Errorf("reason %q, want %q", got, reason)
	}
	if reason == "" && status.Convert(err).Message() != statusMessage(own) {
		t.Errorf("message %q, want the handler's %q", status.Convert(err).Message(), statusMessage(own))
	}
	if reason != "" {
		wantSilence(t, err)
	}
}

func statusMessage(err error) string { return status.Convert(err).Message() }

func TestLostDuringAStream(t *testing.T) {
	for _, first := range []bool{false, true} {
		for _, sends := range []bool{false, true} {
			for _, c := range endings {
				t.Run(fmt.Sprintf("%s, first message %v, sends before %v", c.name, first, sends), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						here := make(chan error, 1)
						var own error
						conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
							before := stream.Context()
							if _, err := stream.Recv(); err != nil {
								t.Error(err)
							}
							defer w.Watch(stream.Context())()
							if sends {
								if err := stream.Send(&text{}); err != nil {
									t.Error(err)
								}
							}
							w.Lose(before)
							if err := stream.Send(&text{}); !errors.Is(err, zklock.ErrLost) {
								t.Errorf("Send after the loss: %v, want ErrLost", err)
							}
							if _, err := stream.Recv(); !errors.Is(err, zklock.ErrLost) {
								t.Errorf("Recv after the loss: %v, want ErrLost", err)
							}
							own = c.handler(stream.Context())
							return own
						}}, grpc.ChainStreamInterceptor(record(here), interceptors.StreamServerInterceptor(w.fixed, firstIf(first)...)))
						got, err := count(t.Context(), conn)
						if code := status.Code(err); code != c.code {
							t.Errorf("the client got %v, want %v", err, c.code)
						}
						if want := map[bool]int{true: 1}[sends]; got != want {
							t.Errorf("the client got %d messages, want %d", got, want)
						}
						wantLost(t, <-here, own, c.code, c.reason)
					})
				})
			}
		}
	}
}

func firstIf(first bool) []interceptors.Option {
	if first {
		return []interceptors.Option{interceptors.WithFirstMessage()}
	}
	return nil
}

// count sends one message, and counts the replies until the stream ends.
func count(ctx context.Context, conn *grpc.ClientConn) (n int, err error) {
	stream, err := newShop(conn).Chat(ctx)
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&text{}); err != nil {
		return 0, err
	}
	for ; ; n++ {
		if _, err := stream.Recv(); err != nil {
			return n, err
		}
	}
}

// TestNothingGoesThroughAStreamOfOneRequestAfterALoss: the handler of a stream with one request
// receives and sends after the loss. Both calls fail with the loss.
func TestNothingGoesThroughAStreamOfOneRequestAfterALoss(t *testing.T) {
	for _, first := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			conn := serve(t, &shop{watch: func(_ *text, stream grpc.ServerStreamingServer[text]) error {
				w.Lose(stream.Context())
				if err := stream.RecvMsg(&text{}); !errors.Is(err, zklock.ErrLost) {
					t.Errorf("RecvMsg after the loss: %v, want ErrLost", err)
				}
				if err := stream.Send(&text{}); !errors.Is(err, zklock.ErrLost) {
					t.Errorf("Send after the loss: %v, want ErrLost", err)
				}
				return nil
			}}, onServer(w.fixed, firstIf(first)...)...)
			wantStatus(t, runStream(t.Context(), conn, "watch", 1), codes.FailedPrecondition, interceptors.ReasonLost)
		})
	}
}

// TestLossWakesAHandlerThatWaitsForItsClient: on a stream without messages, only the loss
// itself can end the handler's Recv.
func TestLossWakesAHandlerThatWaitsForItsClient(t *testing.T) {
	for _, first := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			conn := serve(t, &shop{chat: func(stream grpc.BidiStreamingServer[text, text]) error {
				if _, err := stream.Recv(); err != nil {
					return err
				}
				defer w.Watch(stream.Context())()
				_, err := stream.Recv()
				if !errors.Is(err, zklock.ErrLost) {
					t.Errorf("Recv: %v, want ErrLost", err)
				}
				return err
			}}, onServer(w.fixed, firstIf(first)...)...)
			time.AfterFunc(time.Minute, func() { w.ensemble.ExpireAll() })
			start := time.Now()
			_, err := count(t.Context(), conn)
			if took := time.Since(start); took < time.Minute || took > 61*time.Second {
				t.Errorf("the stream ended after %v, want a minute", took)
			}
			wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonLost)
		})
	}
}

func TestLostThroughAPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(w.fixed), func(ctx context.Context, _ any) (any, error) {
			w.ensemble.Partition(memdriver.AroundClients(0))
			start := time.Now()
			<-ctx.Done()
			if took := time.Since(start); took > corekit.SessionTimeout {
				t.Errorf("the context ended after %v, when another client may hold the lock", took)
			}
			return nil, ctx.Err()
		})
		wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonLost)
	})
}

func TestBreakByAnOperatorIsALoss(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "first message"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				broken := func() {
					if n := w.ensemble.Break(w.client.Mutex("orders/42").Path()); n != 1 {
						t.Errorf("Break removed %d nodes, want 1", n)
					}
				}
				conn := serve(t, &shop{
					pay: func(context.Context, *text) (*text, error) {
						broken()
						return &text{}, nil
					},
					chat: func(stream grpc.BidiStreamingServer[text, text]) error {
						_, err := stream.Recv()
						broken()
						return err
					},
				}, onServer(w.fixed, firstIf(kind == "first message")...)...)
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(t.Context(), &text{})
				} else {
					err = chat(t.Context(), conn)
				}
				wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonLost)
			})
		})
	}
}

// TestAnotherLocksLossIsTheHandlersOwn: a handler returns the loss of another lock, which it has
// acquired itself. The call then fails with that error, as with any other error of the handler.
func TestAnotherLocksLossIsTheHandlersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		other := &zklock.LostError{Name: "other", Cause: errors.New("expired")}
		_, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(w.fixed), func(context.Context, any) (any, error) {
			return nil, other
		})
		if err != error(other) {
			t.Errorf("error %v, want the handler's own error unchanged", err)
		}
	})
}

func TestLostDuringAClientsCall(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "first message"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var done error
				conn := serve(t, &shop{
					pay: func(ctx context.Context, _ *text) (*text, error) {
						w.ensemble.ExpireAll()
						<-ctx.Done()
						done = ctx.Err()
						return nil, ctx.Err()
					},
					chat: func(stream grpc.BidiStreamingServer[text, text]) error {
						w.ensemble.ExpireAll()
						<-stream.Context().Done()
						done = stream.Context().Err()
						return done
					},
				}, onClient(w.fixed, firstIf(kind == "first message")...)...)
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(t.Context(), &text{})
				} else {
					err = chat(t.Context(), conn)
				}
				wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonLost)
				if !errors.Is(err, zklock.ErrLost) {
					t.Errorf("%v does not match ErrLost", err)
				}
				synctest.Wait()
				if done != context.Canceled {
					t.Errorf("the handler's context ended with %v, want context.Canceled", done)
				}
			})
		})
	}
}

// TestSuccessOfAClientsCallAfterALossIsALoss: the server ends the call successfully at
// the moment of the loss.
func TestSuccessOfAClientsCallAfterALossIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		i := interceptors.UnaryClientInterceptor(w.fixed)
		err := i(t.Context(), methodPay, &text{}, &text{}, nil,
			func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				w.Lose(ctx)
				return nil
			})
		wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonLost)
	})
}

// TestLostBeforeTheHandlerBegins: the lock is lost between its grant and the call of the
// handler, which must not run then.
func TestLostBeforeTheHandlerBegins(t *testing.T) {
	for _, kind := range []string{"unary on the server", "stream on the server", "first message on the server"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				defer e.Close()
				c, err := zklock.OpenConnector(e.Connector(), zklock.WithHooks(zklock.Hooks{
					Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
						return ctx, func(r zklock.AcquireResult) {
							e.ExpireAll()
							<-r.Lock.Done()
						}
					},
				}))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				there, here := kinds[kind](t, t.Context(), func(context.Context, interceptors.Call) zklock.Acquirer { return c.Mutex("orders/42") })
				if kind == "first message on the server" { // the handler runs, and waits in its first RecvMsg
					wantStatus(t, there, codes.FailedPrecondition, interceptors.ReasonLost)
				} else {
					wantStatus(t, there, codes.Unavailable, interceptors.ReasonUnavailable)
				}
				if !errors.Is(here, zklock.ErrLost) {
					t.Errorf("%v does not match ErrLost", here)
				}
			})
		})
	}
}

// TestLostThoughTheHandlerReleases: a handler that has lost its lock releases it itself, and
// ignores the error. The call fails nevertheless.
func TestLostThoughTheHandlerReleases(t *testing.T) {
	for _, kind := range []string{"unary", "stream", "first message"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				lose := func(ctx context.Context) {
					lock, _ := zklock.FromContext(ctx)
					w.Lose(ctx)
					_ = lock.Release(context.WithoutCancel(ctx))
				}
				conn := serve(t, &shop{
					pay: func(ctx context.Context, _ *text) (*text, error) {
						lose(ctx)
						return &text{}, nil
					},
					chat: func(stream grpc.BidiStreamingServer[text, text]) error {
						_, err := stream.Recv()
						lose(stream.Context())
						return err
					},
				}, onServer(w.fixed, firstIf(kind == "first message")...)...)
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(t.Context(), &text{})
				} else {
					err = chat(t.Context(), conn)
				}
				wantStatus(t, err, codes.FailedPrecondition, interceptors.ReasonLost)
			})
		})
	}
}
