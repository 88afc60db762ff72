package interceptors_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestContendedCallFailsWhenItsWaitIsOver(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []interceptors.Option
		wait time.Duration
		want codes.Code
	}{
		{"by default", nil, 10 * time.Second, codes.Aborted},
		{"with a wait", []interceptors.Option{interceptors.WithWait(2 * time.Second)}, 2 * time.Second, codes.Aborted},
		{"with a try", []interceptors.Option{interceptors.WithWait(0)}, 0, codes.Aborted},
		{"as Unavailable", []interceptors.Option{interceptors.WithWait(0), interceptors.WithCode(codes.Unavailable)}, 0, codes.Unavailable},
		{"as ResourceExhausted", []interceptors.Option{interceptors.WithWait(0), interceptors.WithCode(codes.ResourceExhausted)}, 0, codes.ResourceExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			everyKind(t, func(t *testing.T, call caller) {
				w := newWorld(t)
				release := w.Hold("orders/42")
				defer release()
				start := time.Now()
				there, here := call(t.Context(), w.fixed, c.opts...)
				if waited := time.Since(start); waited != c.wait {
					t.Errorf("waited %v, want %v", waited, c.wait)
				}
				wantStatus(t, there, c.want, interceptors.ReasonContended)
				if d := retryDelay(there); d < time.Second || d > 1500*time.Millisecond {
					t.Errorf("RetryInfo of %v, want between 1s and 1.5s", d)
				}
				if !errors.Is(here, zklock.ErrNotAcquired) {
					t.Errorf("%v does not match ErrNotAcquired", here)
				}
			})
		})
	}
}

func TestRetryDelayIsJitteredAndNeverShorter(t *testing.T) {
	pick := func(context.Context, interceptors.Call) zklock.Acquirer { return zklock.Refuse(zklock.ErrNotAcquired) }
	for _, d := range []time.Duration{time.Nanosecond, time.Second, 9500 * time.Millisecond} {
		i := interceptors.UnaryServerInterceptor(pick, interceptors.WithRetryDelay(d))
		least, most := time.Hour, time.Duration(0)
		for range 500 {
			_, err := callUnary(t.Context(), i, nil)
			got := retryDelay(err)
			if got < d || got > d+d/2 {
				t.Fatalf("RetryInfo of %v, want between %v and %v", got, d, d+d/2)
			}
			least, most = min(least, got), max(most, got)
		}
		if d > time.Second && most-least < d/4 {
			t.Errorf("all of 500 delays were between %v and %v, want more difference", least, most)
		}
	}
	if _, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(pick, interceptors.WithRetryDelay(0)), nil); retryDelay(err) != 0 || interceptors.Reason(err) == "" {
		t.Errorf("RetryInfo of %v, reason %q; want no RetryInfo with WithRetryDelay(0)", retryDelay(err), interceptors.Reason(err))
	}
}

// A call that is refused since its wait would be too long comes back after the estimate, but within a minute or so.
func TestRetryDelayHasTheEstimate(t *testing.T) {
	for _, c := range []struct{ estimate, delay, want time.Duration }{
		{20 * time.Second, time.Second, 20 * time.Second},
		{20 * time.Second, 40 * time.Second, 40 * time.Second},
		{time.Hour, time.Second, time.Minute},
		{time.Hour, 2 * time.Minute, 2 * time.Minute},
		{time.Hour, 0, 0},
	} {
		everyKind(t, func(t *testing.T, call caller) {
			pick := func(context.Context, interceptors.Call) zklock.Acquirer {
				return zklock.Refuse(&zklock.BusyError{Wait: c.estimate})
			}
			there, _ := call(t.Context(), pick, interceptors.WithRetryDelay(c.delay))
			wantStatus(t, there, codes.Aborted, interceptors.ReasonContended)
			if got := retryDelay(there); got < c.want || got > c.want+c.want/2 {
				t.Errorf("an estimate of %v, WithRetryDelay(%v): RetryInfo of %v, want between %v and %v", c.estimate, c.delay, got, c.want, c.want+c.want/2)
			}
		})
	}
}

func TestErrorsOfAcquire(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   codes.Code
		reason string
		retry  bool
	}{
		{zklock.ErrNotAcquired, codes.Aborted, interceptors.ReasonContended, true},
		{zklock.ErrTooManyWaiters, codes.Aborted, interceptors.ReasonContended, true},
		{zklock.ErrUnavailable, codes.Unavailable, interceptors.ReasonUnavailable, true},
		{zklock.ErrClosed, codes.Unavailable, interceptors.ReasonUnavailable, true},
		{zklock.ErrInvalidName, codes.InvalidArgument, interceptors.ReasonName, false},
		{zklock.ErrMisuse, codes.Internal, interceptors.ReasonError, false},
		{zklock.ErrDeadlock, codes.Internal, interceptors.ReasonError, false},
		{zklock.ErrConflict, codes.Internal, interceptors.ReasonError, false},
		{zklock.ErrNoAuth, codes.Internal, interceptors.ReasonError, false},
		{zklock.ErrBadEnsemble, codes.Internal, interceptors.ReasonError, false},
		{&zklock.LostError{Cause: zklock.ErrUnavailable}, codes.Unavailable, interceptors.ReasonUnavailable, true},
		{errors.New("whatever"), codes.Internal, interceptors.ReasonError, false},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			everyKind(t, func(t *testing.T, call caller) {
				there, here := call(t.Context(), func(context.Context, interceptors.Call) zklock.Acquirer {
					return zklock.Refuse(&zklock.Error{Op: "acquire", Name: "orders/42", Err: c.err})
				})
				wantStatus(t, there, c.code, c.reason)
				if got := retryDelay(there) != 0; got != c.retry {
					t.Errorf("RetryInfo %v, want %v", got, c.retry)
				}
				if !errors.Is(here, c.err) {
					t.Errorf("%v does not match %v", here, c.err)
				}
				var zerr *zklock.Error
				if !errors.As(here, &zerr) || !strings.Contains(zerr.Error(), "orders/42") {
					t.Errorf("the error for logs is %v", zerr)
				}
				wantSilence(t, fmt.Errorf("wrapped by an outer interceptor: %w", here))
			})
		})
	}
}

func TestUnreachableEnsembleIsUnavailable(t *testing.T) {
	everyKind(t, func(t *testing.T, call caller) {
		w := newWorld(t)
		w.ensemble.Partition(memdriver.AroundClients(0))
		there, here := call(t.Context(), w.fixed)
		wantStatus(t, there, codes.Unavailable, interceptors.ReasonUnavailable)
		if retryDelay(there) == 0 {
			t.Error("no RetryInfo")
		}
		if !errors.Is(here, zklock.ErrUnavailable) {
			t.Errorf("%v does not match ErrUnavailable", here)
		}
	})
}

func TestBadNameIsInvalid(t *testing.T) {
	everyKind(t, func(t *testing.T, call caller) {
		w := newWorld(t)
		for _, name := range []string{"orders//42", "orders/..", ""} {
			there, here := call(t.Context(), func(context.Context, interceptors.Call) zklock.Acquirer { return w.client.Mutex(name) })
			wantStatus(t, there, codes.InvalidArgument, interceptors.ReasonName)
			if !errors.Is(here, zklock.ErrInvalidName) {
				t.Errorf("%v does not match ErrInvalidName", here)
			}
		}
	})
}

// TestDeadlineDuringTheWait sets the deadline on the side that waits. A deadline of a
// remote client would also end the call in the client.
func TestDeadlineDuringTheWait(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		want         error
		obstacle     func(*world) (undo func())
	}{
		{"for another holder", interceptors.ReasonContended, zklock.ErrNotAcquired, func(w *world) func() { return w.Hold("orders/42") }},
		{"for the ensemble", interceptors.ReasonUnavailable, zklock.ErrUnavailable, func(w *world) func() {
			w.ensemble.Partition(memdriver.AroundClients(0))
			return func() {}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer c.obstacle(w)()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := callUnary(ctx, interceptors.UnaryServerInterceptor(w.fixed), nil)
				if waited := time.Since(start); waited != time.Second {
					t.Errorf("waited %v, want 1s", waited)
				}
				wantStatus(t, err, codes.DeadlineExceeded, c.reason)
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, c.want) {
					t.Errorf("%v does not match DeadlineExceeded and %v", err, c.want)
				}
			})
		})
	}
	for _, kind := range []string{"unary on the client", "stream on the client", "first message on the client"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.Hold("orders/42")()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := kinds[kind](t, ctx, w.fixed)
				wantStatus(t, err, codes.DeadlineExceeded, interceptors.ReasonContended)
			})
		})
	}
}

func TestClientGoneDuringTheWaitIsCanceledAndLeavesTheQueue(t *testing.T) {
	everyKind(t, func(t *testing.T, call caller) {
		w := newWorld(t)
		release := w.Hold("orders/42")
		defer release()
		ctx, hangUp := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, hangUp)
		start := time.Now()
		there, here := call(ctx, w.fixed)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v, want 1s", waited)
		}
		wantStatus(t, there, codes.Canceled, "")
		wantStatus(t, here, codes.Canceled, "")
		if !errors.Is(here, context.Canceled) {
			t.Errorf("%v does not match Canceled", here)
		}
		if st := w.client.Stats(); st.Waiting != 0 || len(w.Locks()) != 0 {
			t.Errorf("%d acquisitions still wait, %d locks were acquired; want none", st.Waiting, len(w.Locks()))
		}
	})
}

func TestNestedLockOfTheSameNameIsAnInternalError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lock := interceptors.UnaryServerInterceptor(w.fixed)
		conn := serve(t, &shop{}, grpc.ChainUnaryInterceptor(lock, lock))
		_, err := newShop(conn).Pay(t.Context(), &text{})
		wantStatus(t, err, codes.Internal, interceptors.ReasonError)
	})
}

func TestStaleSequencerIsAFailedPrecondition(t *testing.T) {
	for _, kind := range []string{"unary on the server", "stream on the server"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard := newerSeen(t)
				ctx := metadata.AppendToOutgoingContext(t.Context(), fence.Key, sequencer("upstream", 10))
				there, here := kinds[kind](t, ctx, interceptors.PassThrough, interceptors.WithSequencerCheck(guard, allCallers))
				wantStatus(t, there, codes.FailedPrecondition, interceptors.ReasonStale)
				if !errors.Is(here, fence.ErrStale) {
					t.Errorf("%v does not match ErrStale", here)
				}
			})
		})
	}
}

func TestReasonOfForeignErrors(t *testing.T) {
	for _, err := range []error{nil, errors.New("plain"), status.Error(codes.Aborted, "LOCK_LOST")} {
		if got := interceptors.Reason(err); got != "" {
			t.Errorf("Reason(%v) = %q, want \"\"", err, got)
		}
	}
}

func TestNilPicksPanic(t *testing.T) {
	for name, make := range map[string]func(){
		"UnaryServerInterceptor":  func() { interceptors.UnaryServerInterceptor(nil) },
		"StreamServerInterceptor": func() { interceptors.StreamServerInterceptor(nil) },
		"UnaryClientInterceptor":  func() { interceptors.UnaryClientInterceptor(nil) },
		"StreamClientInterceptor": func() { interceptors.StreamClientInterceptor(nil) },
		"Optional":                func() { interceptors.Optional(nil) },
	} {
		func() {
			defer func() {
				if v, want := recover(), "interceptors: "+name+": pick is nil: want a function that chooses each call's lock"; v != want {
					t.Errorf("recovered %v, want %q", v, want)
				}
			}()
			make()
		}()
	}
}

// TestLogHasTheMethodOfTheCall: an error of the program is logged with the method, on
// servers and on clients.
func TestLogHasTheMethodOfTheCall(t *testing.T) {
	for side, options := range map[string]func(interceptors.Pick, ...interceptors.Option) []any{"server": onServer, "client": onClient} {
		for kind, method := range map[string]string{"unary": "Pay", "upload": "Upload", "watch": "Watch"} {
			t.Run(side+" "+kind, func(t *testing.T) {
				log := newJournal()
				broken := func(context.Context, interceptors.Call) zklock.Acquirer { return zklock.All() }
				conn := serve(t, &shop{}, options(broken, interceptors.WithLogger(log.logger()))...)
				var err error
				if kind == "unary" {
					_, err = newShop(conn).Pay(t.Context(), &text{Value: "42"})
				} else {
					err = runStream(t.Context(), conn, kind, 1)
				}
				wantStatus(t, err, codes.Internal, interceptors.ReasonError)
				<-log.wrote
				if want := " method=/zklock.test.shop.v1.Shop/" + method + " "; strings.Count(log.String(), want) != 1 {
					t.Errorf("the log does not have%q once:\n%s", want, log)
				}
			})
		}
	}
}
