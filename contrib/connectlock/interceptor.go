package connectlock

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// HandlerInterceptor returns an interceptor for handlers. It holds a lock while the handler of
// a call runs. pick chooses the lock for each call; if it returns nil, the call is served
// without a lock.
//
// The handler gets a context that carries the lock (see zklock.FromContext). It is cancelled
// when the lock is lost, with the loss as its cause. From then on Send and Receive of a stream
// fail. A Receive that is waiting for a message from the client fails at once, and the handler
// must not use the message that it passed to Receive again. A Send that is waiting for the
// client to read continues to wait: see [Handler] and [WithMaxHold]. A Receive that waits also ends when the call's
// deadline passes, so that the handler can return and the lock is given back.
//
// The interceptor does nothing in a client. HandlerInterceptor panics if pick is nil.
func HandlerInterceptor(pick Pick, opts ...Option) connect.Interceptor {
	return handlers{newConfig("HandlerInterceptor", pick, opts)}
}

// ClientInterceptor returns an interceptor for clients of servers that do not lock. It holds a
// lock during a call. pick chooses the lock for each call; if it returns nil, the call is made
// without a lock.
//
// The call's context ends when the lock is lost. If the client gives a call up, for that reason
// or another, the server may continue it for a while without the lock. So it is safer to lock
// in the server, where the work is done.
//
// A stream acquires its lock with the first Send, or with CloseRequest if there is none, and
// holds it until it has ended. That is when Receive has returned an error, io.EOF too; when
// Send has failed; when the response was closed; and when the context has ended. A stream that
// is abandoned without any of these holds its lock forever, and connect's resources too. So
// close its request and its response. A Receive that waits when the lock is lost ends at once.
//
// The interceptor does nothing in a handler. ClientInterceptor panics if pick is nil.
func ClientInterceptor(pick Pick, opts ...Option) connect.Interceptor {
	return clients{newConfig("ClientInterceptor", pick, opts)}
}

// handlers is the interceptor for handlers.
type handlers struct{ *config }

// WrapUnary implements connect.Interceptor.
func (h handlers) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return h.unary(false, next) }

// WrapStreamingClient implements connect.Interceptor.
func (handlers) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (h handlers) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		call := newCall(conn.Spec(), conn.RequestHeader())
		ctx, limit := served.LimitOf(h.withCaller(ctx, call), h.writeTimeout)
		if h.firstMessage {
			return h.serveFirst(ctx, conn, call, limit, next)
		}
		a := h.pick(ctx, call)
		switch a {
		case nil:
			return next(ctx, conn)
		case protolock.NoMessage:
			a = protolock.TooEarly
		}
		return h.hold(ctx, call, a, limit, func(ctx context.Context, lock *zklock.Lock) error {
			s := &holding.Stream{Errors: h.failures, Ctx: ctx, Inner: conn.Receive, Waits: call.ClientStream, Logger: h.logger}
			s.Hold(lock)
			inner := &handlerStream{StreamingHandlerConn: conn, Stream: s}
			cut := newCut(ctx, h.maxHold)
			inner.cut.Store(cut)
			defer cut.Stop()
			return next(ctx, inner)
		})
	}
}

// clients is the interceptor for clients.
type clients struct{ *config }

// WrapUnary implements connect.Interceptor.
func (c clients) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return c.unary(true, next) }

// WrapStreamingHandler implements connect.Interceptor.
func (clients) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient implements connect.Interceptor.
func (c clients) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return newClientStream(ctx, c.config, next, spec)
	}
}

// unary holds a lock during a unary call, on the client's side or on the handler's.
func (c *config) unary(onClient bool, next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		spec := req.Spec()
		if spec.IsClient != onClient {
			return next(ctx, req)
		}
		call := newCall(spec, req.Header())
		call.Request = req.Any()
		var limit served.Limit
		if !onClient {
			ctx, limit = served.LimitOf(c.withCaller(ctx, call), c.writeTimeout)
		}
		a := c.pick(ctx, call)
		if a == nil {
			return next(ctx, req)
		}
		var resp connect.AnyResponse
		err := c.hold(ctx, call, a, limit, func(ctx context.Context, _ *zklock.Lock) (err error) {
			resp, err = next(ctx, req)
			return err
		})
		if err != nil {
			return nil, err
		}
		return resp, nil
	}
}

// errNotHeld is the error of a lock that was lost between its grant and the beginning of the
// work, if the release did not return a loss.
var errNotHeld = &zklock.LostError{Cause: errors.New("it was lost before the call began")}

// hold does the work of a call while a is held. It returns the work's error, or one that
// describes the failure of the lock.
func (c *config) hold(ctx context.Context, call Call, a zklock.Acquirer, limit served.Limit, work func(context.Context, *zklock.Lock) error) error {
	a, opts := c.acquisition(ctx, call, a, limit)
	entered := false
	var done error // the work's, kept from Do, so that it is not taken for an error of the lock
	err := zklock.Do(ctx, a, func(ctx context.Context, lock *zklock.Lock) error {
		if !lock.Valid() {
			return nil // lost after its grant: Do notices that when it releases the lock
		}
		if c.maxHold > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, c.maxHold, zklock.ErrMaxHold)
			defer cancel()
		}
		entered = true
		done = c.failures.Overdue(ctx, work(ctx, lock))
		return nil
	}, opts...)
	switch {
	case entered:
		return c.failures.Settle(done, err)
	case err == nil:
		err = errNotHeld
	}
	return c.refuse(ctx, call.Procedure, err)
}
