package connectlock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// A handler's context carries the lock, in each protocol, and the lock is free afterwards.
func TestUnaryHandlerHoldsTheLock(t *testing.T) {
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c, e := zklocktest.New(t)
			s := serve(t, shop{pay: func(ctx context.Context, _ *text) (*text, error) {
				wantTaken(t, e)
				return wrapperspb.String(name(ctx)), nil
			}}, connectlock.HandlerInterceptor(fixed(c)), opts...)
			if got, err := call(t.Context(), s.pay, "x"); got != "orders/42" || err != nil {
				t.Errorf("the handler held %q, %v", got, err)
			}
			wantFree(t, e)
		})
	}
}

// A call that does not get its lock is refused, with a reason and a delay.
func TestUnaryContended(t *testing.T) {
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c, e := zklocktest.New(t)
			defer elsewhere(t, e)()
			lock := connectlock.HandlerInterceptor(fixed(c), connectlock.WithWait(0), connectlock.WithCode(connect.CodeResourceExhausted), connectlock.WithRetryDelay(4*time.Second))
			s := serve(t, shop{}, lock, opts...)
			_, err := call(t.Context(), s.pay, "x")
			wantError(t, err, connect.CodeResourceExhausted, "LOCK_CONTENDED")
			if d := retryDelay(err); d < 4*time.Second || d > 6*time.Second {
				t.Errorf("the error has the delay %v, want 4 to 6 s", d)
			}
		})
	}
}

// retryDelay returns the delay in an error's RetryInfo; 0 without one.
func retryDelay(err error) time.Duration {
	var e *connect.Error
	if !errors.As(err, &e) {
		return 0
	}
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if info, ok := m.(*errdetails.RetryInfo); ok {
				return info.GetRetryDelay().AsDuration()
			}
		}
	}
	return 0
}

// The context of the handler ends with the loss, and the call fails whatever the handler
// returns.
func TestUnaryLost(t *testing.T) {
	full := connect.NewError(connect.CodeDataLoss, errors.New("the disk is full"))
	full.Meta().Set("disk", "7")
	detail, err := connect.NewErrorDetail(wrapperspb.String("7"))
	if err != nil {
		t.Fatal(err)
	}
	full.AddDetail(detail)
	for what, c := range map[string]struct {
		returned error
		code     connect.Code
		reason   string
	}{
		"nil":             {nil, connect.CodeFailedPrecondition, "LOCK_LOST"},
		"the context's":   {context.Canceled, connect.CodeFailedPrecondition, "LOCK_LOST"},
		"connect's error": {full, connect.CodeDataLoss, ""},
		"another":         {errors.New("the disk is full"), connect.CodeUnknown, ""},
	} {
		t.Run(what, func(t *testing.T) {
			client, e := zklocktest.New(t)
			var cause, seen error
			observe := observer(func(err error) { seen = err })
			lock := connectlock.HandlerInterceptor(fixed(client))
			s := serve(t, shop{pay: func(ctx context.Context, _ *text) (*text, error) {
				e.ExpireAll()
				<-ctx.Done()
				cause = context.Cause(ctx)
				return wrapperspb.String("done"), c.returned
			}}, chain{observe, lock})
			_, err := call(t.Context(), s.pay, "x")
			wantError(t, err, c.code, c.reason)
			if got := new(connect.Error); c.returned == error(full) && (!errors.As(err, &got) || len(got.Details()) != 1 || got.Meta().Get("disk") != "7") {
				t.Errorf("error %v with details %v and header %v, want those of the handler", err, got.Details(), got.Meta())
			}
			if !errors.Is(cause, zklock.ErrLost) {
				t.Errorf("the handler's context ended with %v, want the loss", cause)
			}
			if !errors.Is(seen, zklock.ErrLost) || c.returned != nil && !errors.Is(seen, c.returned) {
				t.Errorf("in the server the error is %v, want one that matches the loss and the handler's", seen)
			}
		})
	}
}

// observer is an interceptor that sees the errors of unary calls.
func observer(see func(error)) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			resp, err := next(ctx, req)
			see(err)
			return resp, err
		}
	}
}

// chain is two interceptors as one, the outer one first.
type chain [2]connect.Interceptor

func (c chain) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return c[0].WrapUnary(c[1].WrapUnary(next))
}

func (c chain) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return c[0].WrapStreamingClient(c[1].WrapStreamingClient(next))
}

func (c chain) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return c[0].WrapStreamingHandler(c[1].WrapStreamingHandler(next))
}

// A handler that panics gives the lock back.
func TestUnaryPanic(t *testing.T) {
	c, e := zklocktest.New(t)
	panicked := func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (resp connect.AnyResponse, err error) {
			defer func() {
				if v := recover(); v != nil {
					resp, err = nil, connect.NewError(connect.CodeInternal, errors.New("recovered"))
				}
			}()
			return next(ctx, req)
		}
	}
	s := serve(t, shop{pay: func(context.Context, *text) (*text, error) { panic("broken") }},
		chain{connect.UnaryInterceptorFunc(panicked), connectlock.HandlerInterceptor(fixed(c))})
	_, err := call(t.Context(), s.pay, "x")
	wantError(t, err, connect.CodeInternal, "")
	wantFree(t, e)
}

// A client that gives up while it waits leaves the queue, and the handler does not run.
func TestUnaryClientGoneWhileWaiting(t *testing.T) {
	c, e := zklocktest.New(t)
	release := elsewhere(t, e)
	inServer := make(chan error, 1)
	s := serve(t, shop{pay: func(context.Context, *text) (*text, error) {
		t.Error("the handler ran")
		return nil, errors.New("the handler ran")
	}}, chain{observer(func(err error) { inServer <- err }), connectlock.HandlerInterceptor(fixed(c))})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := call(ctx, s.pay, "x"); ended <- err }()
	eventually(t, "the call waits", func() bool { return c.Stats().Waiting == 1 })
	cancel()
	wantError(t, <-ended, connect.CodeCanceled, "")
	wantError(t, <-inServer, connect.CodeCanceled, "")
	if n := c.Stats().Waiting; n != 0 {
		t.Errorf("%d calls wait, want none", n)
	}
	release()
	wantFree(t, e)
}

// A client that gives up while the handler runs does not release under the handler.
func TestUnaryClientGoneWhileHeld(t *testing.T) {
	c, e := zklocktest.New(t)
	began, end := make(chan struct{}), make(chan struct{})
	s := serve(t, shop{pay: func(ctx context.Context, _ *text) (*text, error) {
		close(began)
		<-ctx.Done()
		<-end
		return nil, ctx.Err()
	}}, connectlock.HandlerInterceptor(fixed(c)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := call(ctx, s.pay, "x"); ended <- err }()
	<-began
	cancel()
	<-ended
	wantTaken(t, e)
	close(end)
	wantFree(t, e)
}

// WithMaxHold ends the handler's context, and releases nothing before the handler returns.
func TestUnaryMaxHold(t *testing.T) {
	c, e := zklocktest.New(t)
	s := serve(t, shop{pay: func(ctx context.Context, _ *text) (*text, error) {
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, zklock.ErrMaxHold) {
			t.Errorf("the context ended with %v, want ErrMaxHold", cause)
		}
		wantTaken(t, e)
		return nil, ctx.Err()
	}}, connectlock.HandlerInterceptor(fixed(c), connectlock.WithMaxHold(time.Millisecond)))
	_, err := call(t.Context(), s.pay, "x")
	wantError(t, err, connect.CodeDeadlineExceeded, "")
	wantFree(t, e)
}

// A client's interceptor holds the lock during the call, and reports its loss.
func TestUnaryClient(t *testing.T) {
	c, e := zklocktest.New(t)
	lose := false
	s := serve(t, shop{pay: func(ctx context.Context, _ *text) (*text, error) {
		wantTaken(t, e)
		if lose {
			e.ExpireAll()
			<-ctx.Done() // the client has given the call up
		}
		return named(ctx, nil)
	}}, nil, connect.WithInterceptors(connectlock.ClientInterceptor(fixed(c), connectlock.WithWait(0))))
	if got, err := call(t.Context(), s.pay, "x"); got != "no lock" || err != nil {
		t.Errorf("the call returned %q, %v; the server does not lock", got, err)
	}
	wantFree(t, e)
	release := elsewhere(t, e)
	_, err := call(t.Context(), s.pay, "x")
	wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")
	if !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("error %v, want one that matches ErrNotAcquired", err)
	}
	release()
	lose = true
	_, err = call(t.Context(), s.pay, "x")
	wantError(t, err, connect.CodeFailedPrecondition, "LOCK_LOST")
	if !errors.Is(err, zklock.ErrLost) {
		t.Errorf("error %v, want one that matches ErrLost", err)
	}
}

// An interceptor for the other side does nothing.
func TestInterceptorsOnTheOtherSide(t *testing.T) {
	c, _ := zklocktest.New(t)
	refuse := func(context.Context, connectlock.Call) zklock.Acquirer { return connectlock.Missing() }
	s := serve(t, shop{
		pay: named,
		upload: func(ctx context.Context, s *connect.ClientStream[text]) (*text, error) {
			return wrapperspb.String(name(ctx)), s.Err()
		},
	}, connectlock.ClientInterceptor(refuse), connect.WithInterceptors(connectlock.HandlerInterceptor(refuse)))
	if got, err := call(t.Context(), s.pay, "x"); got != "no lock" || err != nil {
		t.Errorf("a unary call: %q, %v", got, err)
	}
	if m, err := s.upload.CallClientStream(t.Context()).CloseAndReceive(); err != nil || m.Msg.GetValue() != "no lock" {
		t.Errorf("a stream: %v, %v", m, err)
	}
	if n := c.Stats().Acquired; n != 0 {
		t.Errorf("%d locks were acquired, want none", n)
	}
}

// With WithMaxWaiters a call is refused at once while that many wait already.
func TestUnaryMaxWaiters(t *testing.T) {
	c, e := zklocktest.New(t)
	release := elsewhere(t, e)
	lock := connectlock.HandlerInterceptor(fixed(c), connectlock.WithWait(time.Minute), connectlock.WithAcquire(zklock.WithMaxWaiters(1)))
	s := serve(t, shop{pay: named}, lock)
	waits := make(chan error, 1)
	go func() { _, err := call(t.Context(), s.pay, "x"); waits <- err }()
	eventually(t, "one call waits", func() bool { return c.Stats().Waiting == 1 })
	_, err := call(t.Context(), s.pay, "x")
	wantError(t, err, connect.CodeAborted, "LOCK_CONTENDED")
	release()
	if err := <-waits; err != nil {
		t.Errorf("the call that waited: %v", err)
	}
}

// With Reenter a call in a context that carries its lock joins it.
func TestUnaryReenter(t *testing.T) {
	for _, c := range []struct {
		opts []connectlock.Option
		want connect.Code
	}{{nil, connect.CodeInternal}, {[]connectlock.Option{connectlock.WithAcquire(zklock.Reenter())}, 0}} {
		client, _ := zklocktest.New(t)
		inner := connectlock.HandlerInterceptor(fixed(client), append(c.opts, connectlock.WithLogger(slog.New(slog.DiscardHandler)))...)
		next := inner.WrapUnary(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
			if n := len(zklock.HeldIn(ctx)); n != 2 {
				t.Errorf("the inner call has %d locks, want 2", n)
			}
			return connect.NewResponse(wrapperspb.String("done")), nil
		})
		outer := connectlock.HandlerInterceptor(fixed(client)).WrapUnary(next)
		_, err := outer(t.Context(), connect.NewRequest(wrapperspb.String("x")))
		if c.want == 0 && err != nil || c.want != 0 && connect.CodeOf(err) != c.want {
			t.Errorf("%v, want the code %v", err, c.want)
		}
	}
}

// With WithoutHandover each call has a token with a Zxid of its own. A handover_time that a slow machine
// does not use up is what lets the calls share a node without it.
func TestUnaryWithoutHandover(t *testing.T) {
	for _, c := range []struct {
		opts []connectlock.Option
		want int
	}{{nil, 1}, {[]connectlock.Option{connectlock.WithAcquire(zklock.WithoutHandover())}, 3}} {
		_, e := zklocktest.New(t)
		client, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), HandoverTime: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		zxids := make(map[int64]bool)
		hold := make(chan struct{})
		s := serve(t, shop{pay: func(ctx context.Context, _ *text) (*text, error) {
			<-hold
			l, _ := zklock.FromContext(ctx)
			mu.Lock()
			defer mu.Unlock()
			zxids[l.Token().Zxid] = true
			return wrapperspb.String("done"), nil
		}}, connectlock.HandlerInterceptor(fixed(client), c.opts...))
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				if _, err := call(t.Context(), s.pay, "x"); err != nil {
					t.Error(err)
				}
			})
		}
		eventually(t, "one call holds the lock, and two wait", func() bool { return client.Stats().Held == 1 && client.Stats().Waiting == 2 })
		close(hold)
		calls.Wait()
		if len(zxids) != c.want {
			t.Errorf("%d nodes for three calls, want %d", len(zxids), c.want)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
