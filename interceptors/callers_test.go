package interceptors_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// trustAll trusts all callers.
func trustAll(context.Context, interceptors.Call) bool { return true }

// serverKinds are the kinds of calls in which a server locks.
var serverKinds = []string{"unary on the server", "stream on the server", "first message on the server"}

// A server does not wait for a lock of its caller, if it trusts the caller.
func TestServerDoesNotWaitForItsCaller(t *testing.T) {
	for _, kind := range serverKinds {
		for _, c := range []struct {
			name   string
			trust  func(context.Context, interceptors.Call) bool
			value  string
			waited time.Duration
			code   codes.Code
			reason string
		}{
			{"trusted", trustAll, sequencer("orders/42", 7), 0, codes.Internal, interceptors.ReasonError},
			{"not trusted", func(context.Context, interceptors.Call) bool { return false }, sequencer("orders/42", 7), 10 * time.Second, codes.Aborted, interceptors.ReasonContended},
			{"another lock", trustAll, sequencer("orders/43", 7), 10 * time.Second, codes.Aborted, interceptors.ReasonContended},
			{"malformed", trustAll, "nonsense", 10 * time.Second, codes.Aborted, interceptors.ReasonContended},
		} {
			t.Run(kind+", "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					release := w.Hold("orders/42")
					defer release()
					began := time.Now()
					ctx := metadata.AppendToOutgoingContext(t.Context(), fence.Key, c.value)
					there, here := kinds[kind](t, ctx, w.fixed, interceptors.WithCallerLocks(c.trust))
					wantStatus(t, there, c.code, c.reason)
					if took := time.Since(began); took != c.waited {
						t.Errorf("waited %v, want %v", took, c.waited)
					}
					if errors.Is(here, zklock.ErrDeadlock) != (c.waited == 0) {
						t.Error(here)
					}
				})
			})
		}
	}
}

// The handler's acquisitions do not wait for a lock of the caller, with and without a lock of the
// interceptor.
func TestHandlerDoesNotWaitForItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		far := newWorldOn(t, w.ensemble, w.ensemble.Connector())
		for _, pick := range []interceptors.Pick{interceptors.PassThrough, far.fixed} {
			for _, first := range []bool{false, true} {
				var got []error
				work := func(ctx context.Context) {
					_, err := far.client.Mutex("x").Acquire(ctx, zklock.WithWait(time.Minute))
					got = append(got, err)
				}
				conn := serve(t, &shop{
					pay: func(ctx context.Context, m *text) (*text, error) { work(ctx); return m, nil },
					chat: func(s grpc.BidiStreamingServer[text, text]) error {
						_, err := s.Recv()
						work(s.Context())
						return err
					},
				}, append(onServer(pick, append(firstIf(first), interceptors.WithCallerLocks(trustAll))...), onClient(interceptors.PassThrough, interceptors.WithSequencers())...)...)
				x, err := w.client.Mutex("x").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := x.Context(t.Context())
				if _, err := newShop(conn).Pay(ctx, &text{}); err != nil {
					t.Error(err)
				}
				if err := chat(ctx, conn); err != nil {
					t.Error(err)
				}
				cancel()
				_ = x.Release(t.Context())
				if len(got) != 2 || !errors.Is(got[0], zklock.ErrDeadlock) || !errors.Is(got[1], zklock.ErrDeadlock) {
					t.Errorf("first message %v: %v", first, got)
				}
			}
		}
	})
}

// TestDeadlockThroughACall: a service holds x and calls another one, which waits for the lock orders/42.
// The holder of that waits for x.
func TestDeadlockThroughACall(t *testing.T) {
	for _, kind := range []string{"unary on the server", "stream on the server"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				far, third := newWorldOn(t, w.ensemble, w.ensemble.Connector()), newWorldOn(t, w.ensemble, w.ensemble.Connector())
				x, err := w.client.Mutex("x").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer x.Release(t.Context())
				y, err := third.client.Mutex("orders/42").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				waited := make(chan error, 1)
				go func() {
					ctx, cancel := y.Context(t.Context())
					defer cancel()
					l, err := third.client.Mutex("x").Acquire(ctx)
					waited <- err
					_ = l.Release(context.Background())
					_ = y.Release(context.Background())
				}()
				time.Sleep(5 * time.Second) // the last to register is the victim
				ctx := metadata.AppendToOutgoingContext(t.Context(), fence.Key, fence.Of(x)[0].String())
				there, here := kinds[kind](t, ctx, far.fixed, interceptors.WithCallerLocks(trustAll))
				wantStatus(t, there, codes.Aborted, interceptors.ReasonDeadlock)
				if retryDelay(there) == 0 {
					t.Error("the error has no RetryInfo")
				}
				var d *zklock.DeadlockError
				if !errors.As(here, &d) || len(d.Cycle) != 2 || d.Cycle[0].Held != "x" || d.Cycle[0].Waiting != "orders/42" || d.Cycle[0].Label == "" {
					t.Errorf("%v", here)
				}
				_ = x.Release(t.Context())
				if err := <-waited; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWithCallerLocksNeedsATrust(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	interceptors.WithCallerLocks(nil)
}
