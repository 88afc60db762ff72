package connectlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A handler does not wait for a lock of its caller, if it trusts the caller. The caller's client sends its
// locks by middleware.Transport.
func TestHandlerDoesNotWaitForItsCaller(t *testing.T) {
	c, e := zklocktest.New(t)
	far, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	x, err := c.Mutex("x").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release(t.Context())
	ctx, cancel := x.Context(t.Context())
	defer cancel()
	pass := func(context.Context, connectlock.Call) zklock.Acquirer { return nil }
	for _, trusted := range []bool{true, false} {
		trust := func(_ context.Context, call connectlock.Call) bool {
			return trusted && call.Procedure != "" && call.Header.Get(fence.Key) != ""
		}
		for what, lock := range map[string]connect.Interceptor{
			"no lock":       connectlock.HandlerInterceptor(pass, connectlock.WithCallerLocks(trust)),
			"a lock":        connectlock.HandlerInterceptor(fixed(far), connectlock.WithCallerLocks(trust)),
			"first message": connectlock.HandlerInterceptor(fixed(far), connectlock.WithCallerLocks(trust), connectlock.WithFirstMessage()),
		} {
			limit := time.Hour
			if !trusted {
				limit = 0
			}
			var got []error
			work := func(ctx context.Context) {
				l, err := far.Mutex("x").Acquire(ctx, zklock.WithWait(limit))
				if err == nil {
					_ = l.Release(ctx)
				}
				got = append(got, err)
			}
			address := listen(t, shop{
				pay: func(ctx context.Context, m *text) (*text, error) { work(ctx); return m, nil },
				watch: func(ctx context.Context, m *text, s *connect.ServerStream[text]) error {
					work(ctx)
					return s.Send(m)
				},
			}, lock)
			base := &http.Transport{}
			hc := &http.Client{Transport: &middleware.Transport{Base: base}}
			if _, err := call(ctx, connect.NewClient[text, text](hc, address+pay), "a"); err != nil {
				t.Error(err)
			}
			stream, err := connect.NewClient[text, text](hc, address+watch).CallServerStream(ctx, connect.NewRequest(wrapperspb.String("a")))
			if err != nil {
				t.Fatal(err)
			}
			for stream.Receive() {
			}
			if err := stream.Close(); err != nil || stream.Err() != nil {
				t.Error(err, stream.Err())
			}
			base.CloseIdleConnections()
			for _, err := range got {
				if !errors.Is(err, zklock.ErrDeadlock) && (trusted || !errors.Is(err, zklock.ErrNotAcquired)) || !trusted && errors.Is(err, zklock.ErrDeadlock) {
					t.Errorf("%s, trusted %v: %v", what, trusted, err)
				}
			}
			if len(got) != 2 {
				t.Errorf("%s: the handlers ran %d times", what, len(got))
			}
		}
	}
}

// The interceptor does not wait either. What cannot be parsed has no effect.
func TestInterceptorDoesNotWaitForItsCaller(t *testing.T) {
	c, e := zklocktest.New(t)
	release := elsewhere(t, e)
	defer release()
	all := func(context.Context, connectlock.Call) bool { return true }
	s := serve(t, shop{}, connectlock.HandlerInterceptor(fixed(c), connectlock.WithWait(0), connectlock.WithCallerLocks(all)))
	held := fence.Sequencer{Name: "orders/42", Mode: zklock.Exclusive, Token: zklock.Token{Zxid: 7}}.String()
	_, err := call(t.Context(), s.pay, "a", fence.Key, held)
	wantError(t, err, connect.CodeInternal, connectlock.ReasonError)
	_, err = call(t.Context(), s.pay, "a", fence.Key, held+", nonsense")
	wantError(t, err, connect.CodeAborted, connectlock.ReasonContended)
}

// TestDeadlockThroughACall: a service holds x and calls another one, which waits for the lock orders/42. The
// holder of that waits for x. One of the two waits fails, and the other one goes on.
func TestDeadlockThroughACall(t *testing.T) {
	_, e := zklocktest.New(t)
	open := func() *zklock.Client {
		c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), DeadlockTimeout: 50 * time.Millisecond}, zklock.WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	caller, callee, third := open(), open(), open()
	x, err := caller.Mutex("x").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	y, err := third.Mutex("orders/42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		ctx, cancel := y.Context(t.Context())
		defer cancel()
		l, err := third.Mutex("x").Acquire(ctx)
		_ = y.Release(context.Background())
		if err == nil {
			err = l.Release(context.Background())
		}
		waited <- err
	}()
	all := func(context.Context, connectlock.Call) bool { return true }
	address := listen(t, shop{pay: func(_ context.Context, m *text) (*text, error) { return m, nil }}, connectlock.HandlerInterceptor(fixed(callee), connectlock.WithCallerLocks(all)))
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	ctx, cancel := x.Context(t.Context())
	_, called := call(ctx, connect.NewClient[text, text](&http.Client{Transport: &middleware.Transport{Base: base}}, address+pay), "a")
	cancel()
	_ = x.Release(context.Background())
	other := <-waited
	switch {
	case called == nil && errors.As(other, new(*zklock.DeadlockError)):
	case called != nil && other == nil:
		wantError(t, called, connect.CodeAborted, connectlock.ReasonDeadlock)
	default:
		t.Errorf("the call %v, and the other wait %v: want one that a deadlock has ended", called, other)
	}
}

func TestDeadlockIsWorthAnotherTry(t *testing.T) {
	circle := &zklock.DeadlockError{Cycle: []zklock.DeadlockLink{{Host: "h", Held: "orders/42", Waiting: "orders/7"}}}
	pick := func(context.Context, connectlock.Call) zklock.Acquirer { return zklock.Refuse(circle) }
	_, err := call(t.Context(), serve(t, shop{}, connectlock.HandlerInterceptor(pick)).pay, "a")
	wantError(t, err, connect.CodeAborted, "LOCK_DEADLOCK")
	if retryDelay(err) == 0 {
		t.Error("the error has no RetryInfo")
	}
}

func TestWithCallerLocksNeedsATrust(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	connectlock.WithCallerLocks(nil)
}
