package interceptors

import (
	"context"

	"google.golang.org/grpc"
)

// UnaryServerInterceptor holds a lock while the handler of a unary call runs.
// pick says which, for each call; nil lets the call pass without one.
//
// The handler gets a context that carries the lock (see zklock.FromContext) and
// is cancelled, with the cause, when the lock is lost. The package documentation
// says what becomes of the call then.
//
// It panics if pick is nil.
func UnaryServerInterceptor(pick Pick, opts ...Option) grpc.UnaryServerInterceptor {
	cfg := newConfig("UnaryServerInterceptor", pick, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		call := Call{FullMethod: info.FullMethod, Request: req, Metadata: incoming(ctx)}
		if err := cfg.checkSequencers(ctx, call); err != nil {
			return nil, cfg.refuse(ctx, err)
		}
		a := cfg.pick(ctx, call)
		if a == nil {
			return handler(ctx, req)
		}
		var resp any
		s := section{config: cfg, call: call, checks: true, fn: func(ctx context.Context) (err error) {
			resp, err = handler(ctx, req)
			return err
		}}
		err := s.do(ctx, a)
		return resp, err
	}
}

// UnaryClientInterceptor holds a lock around a unary call: for servers that do
// not lock by themselves. pick says which, for each call; nil lets the call pass
// without one.
//
// The call's context ends when the lock is lost. A call that is given up, for
// that reason or another, may go on on the server for a while, without the lock.
//
// It panics if pick is nil.
func UnaryClientInterceptor(pick Pick, opts ...Option) grpc.UnaryClientInterceptor {
	cfg := newConfig("UnaryClientInterceptor", pick, opts)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		call := Call{FullMethod: method, Request: req, Metadata: outgoing(ctx)}
		a := cfg.pick(ctx, call)
		if a == nil {
			return invoker(cfg.send(ctx), method, req, reply, cc, opts...)
		}
		s := section{config: cfg, call: call, fn: func(ctx context.Context) error {
			return overdue(ctx, invoker(cfg.send(ctx), method, req, reply, cc, opts...))
		}}
		return s.do(ctx, a)
	}
}
