package connectlock_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// within makes a call with an interceptor of a handler, without a network.
func within(ctx context.Context, lock connect.Interceptor, work func(ctx context.Context) error) error {
	_, err := lock.WrapUnary(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
		return connect.NewResponse(wrapperspb.String("done")), work(ctx)
	})(ctx, connect.NewRequest(wrapperspb.String("x")))
	return err
}

// The reasons are those that other programs, and other languages, compare with.
func TestReasons(t *testing.T) {
	got := []string{connectlock.ReasonContended, connectlock.ReasonDeadlock, connectlock.ReasonUnavailable, connectlock.ReasonLost, connectlock.ReasonName, connectlock.ReasonError}
	if want := []string{"LOCK_CONTENDED", "LOCK_DEADLOCK", "LOCK_UNAVAILABLE", "LOCK_LOST", "LOCK_NAME", "LOCK_ERROR"}; !slices.Equal(got, want) {
		t.Errorf("the reasons are %q, want %q", got, want)
	}
}

// A call that is refused since its wait would be too long comes back after the estimate, but within a minute or so.
func TestRetryDelayHasTheEstimate(t *testing.T) {
	for _, c := range []struct{ estimate, delay, want time.Duration }{
		{20 * time.Second, time.Second, 20 * time.Second},
		{time.Hour, time.Second, time.Minute},
		{time.Hour, 0, 0},
	} {
		pick := func(context.Context, connectlock.Call) zklock.Acquirer {
			return zklock.Refuse(&zklock.BusyError{Wait: c.estimate})
		}
		err := within(t.Context(), connectlock.HandlerInterceptor(pick, connectlock.WithRetryDelay(c.delay)), nil)
		if got := retryDelay(err); got < c.want || got > c.want+c.want/2 || !errors.Is(err, zklock.ErrBusy) {
			t.Errorf("an estimate of %v, WithRetryDelay(%v): %v with RetryInfo of %v, want between %v and %v", c.estimate, c.delay, err, got, c.want, c.want+c.want/2)
		}
	}
}

// Each reason why a call does not get its lock has its code, its reason and its RetryInfo.
func TestRefusals(t *testing.T) {
	unreachable := func(_ *testing.T, _ *zklock.Client, e *memdriver.Ensemble) { e.Partition(memdriver.AroundClients(0)) }
	taken := func(t *testing.T, _ *zklock.Client, e *memdriver.Ensemble) { elsewhere(t, e) }
	for what, x := range map[string]struct {
		before func(*testing.T, *zklock.Client, *memdriver.Ensemble)
		ends   error // of the call's context, after a second
		code   connect.Code
		reason string
		retry  bool
		cause  error
	}{
		"contended":             {before: taken, code: connect.CodeAborted, reason: "LOCK_CONTENDED", retry: true, cause: zklock.ErrNotAcquired},
		"unreachable":           {before: unreachable, code: connect.CodeUnavailable, reason: "LOCK_UNAVAILABLE", retry: true, cause: zklock.ErrUnavailable},
		"deadline, contended":   {before: taken, ends: context.DeadlineExceeded, code: connect.CodeDeadlineExceeded, reason: "LOCK_CONTENDED", cause: zklock.ErrNotAcquired},
		"deadline, unreachable": {before: unreachable, ends: context.DeadlineExceeded, code: connect.CodeDeadlineExceeded, reason: "LOCK_UNAVAILABLE", cause: zklock.ErrUnavailable},
		"canceled":              {before: taken, ends: context.Canceled, code: connect.CodeCanceled, cause: context.Canceled},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, e := zklocktest.New(t)
				x.before(t, c, e)
				defer e.Heal(memdriver.AroundClients(0))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch x.ends {
				case context.Canceled:
					time.AfterFunc(time.Second, cancel)
				case context.DeadlineExceeded:
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				err := within(ctx, connectlock.HandlerInterceptor(fixed(c), connectlock.WithWait(time.Minute)), func(context.Context) error {
					t.Error("the handler ran")
					return nil
				})
				wantError(t, err, x.code, x.reason)
				if !errors.Is(err, x.cause) {
					t.Errorf("the error does not match %v: %v", x.cause, errors.Unwrap(errors.Unwrap(err)))
				}
				if retry := retryDelay(err) > 0; retry != x.retry {
					t.Errorf("the error has the delay %v, want one: %v", retryDelay(err), x.retry)
				}
			})
		})
	}
}

// The error of a lock that is not available crosses the network, in each protocol, for unary
// calls and for streams.
func TestUnavailable(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	c, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for protocol, client := range protocols {
		for what, opts := range starts {
			t.Run(protocol+"/"+what, func(t *testing.T) {
				s := serve(t, shop{upload: func(_ context.Context, s *connect.ClientStream[text]) (*text, error) {
					if s.Receive() {
						t.Error("the handler has received a message without its lock")
					}
					return wrapperspb.String("the handler's"), nil
				}}, connectlock.HandlerInterceptor(fixed(c), opts...), client...)
				_, err := call(t.Context(), s.pay, "x")
				wantError(t, err, connect.CodeUnavailable, "LOCK_UNAVAILABLE")
				if retryDelay(err) == 0 {
					t.Error("the error has no delay")
				}
				up := s.upload.CallClientStream(t.Context())
				_ = up.Send(wrapperspb.String("x"))
				_, err = up.CloseAndReceive()
				wantError(t, err, connect.CodeUnavailable, "LOCK_UNAVAILABLE")
			})
		}
	}
}

// The other side is not notified of an error of the program. The logger is.
func TestErrorOfTheProgramIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := zklocktest.New(t)
		var log strings.Builder
		lock := connectlock.HandlerInterceptor(fixed(c), connectlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		err := within(t.Context(), lock, func(ctx context.Context) error {
			return within(ctx, lock, func(context.Context) error { // without Reenter
				t.Error("the inner handler ran")
				return nil
			})
		})
		wantError(t, err, connect.CodeInternal, "LOCK_ERROR")
		synctest.Wait()
		if !errors.Is(err, zklock.ErrDeadlock) || !strings.Contains(log.String(), zklock.ErrDeadlock.Error()) {
			t.Errorf("%v; the log has %q, want the deadlock in both", errors.Unwrap(errors.Unwrap(err)), log.String())
		}
	})
}

// The errors of different calls are different values: programs add details and headers to them.
func TestErrorsAreNotShared(t *testing.T) {
	c, _ := zklocktest.New(t)
	s := serve(t, shop{}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(fixed(c))))
	closed := func() (e *connect.Error) {
		talk := s.chat.CallBidiStream(t.Context())
		if err := talk.CloseResponse(); err != nil {
			t.Error(err)
		}
		if err := talk.Send(wrapperspb.String("x")); !errors.As(err, &e) || e.Code() != connect.CodeCanceled {
			t.Fatalf("Send on a stream that was closed: %v, want canceled", err)
		}
		return e
	}
	closed().Meta().Set("call", "1")
	if got := closed().Meta().Get("call"); got != "" {
		t.Errorf("the error of the second call has %q, which was added to that of the first", got)
	}
}
