package interceptors

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/internal/served"
)

// UnaryServerInterceptor holds a lock while the handler of a unary call runs. pick
// chooses the lock for each call; if it returns nil, the call is served without a
// lock.
//
// The handler gets a context that carries the lock (see zklock.FromContext). It is
// cancelled when the lock is lost, with the loss as its cause. The package
// documentation describes the call's error in that case.
//
// It panics if pick is nil.
func UnaryServerInterceptor(pick Pick, opts ...Option) grpc.UnaryServerInterceptor {
	cfg := newConfig("UnaryServerInterceptor", pick, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		call := Call{FullMethod: info.FullMethod, Request: req, Metadata: incoming(ctx)}
		if err := cfg.checkSequencers(ctx, call); err != nil {
			return nil, cfg.refuse(ctx, call, err)
		}
		ctx, _ = cfg.withCaller(ctx, call)
		ctx, limit := served.LimitOf(ctx, cfg.writeTimeout)
		a := cfg.pick(ctx, call)
		if a == nil {
			return handler(ctx, req)
		}
		s := &unaryServer{section: section{config: cfg, call: call, limit: limit, checks: true}, handler: handler}
		s.work = s
		err := s.hold(ctx, a)
		return s.resp, err
	}
}

// unaryServer is a unary call on a server.
type unaryServer struct {
	section
	handler grpc.UnaryHandler
	resp    any // the handler's; gRPC sends it if the error is nil
}

// do implements work.
func (s *unaryServer) do(ctx context.Context) (err error) {
	s.resp, err = s.handler(ctx, s.call.Request)
	return err
}

// UnaryClientInterceptor holds a lock during a unary call, for servers that do not
// lock. pick chooses the lock for each call; if it returns nil, the call is made
// without a lock.
//
// The call's context ends when the lock is lost. If the client gives a call up, for
// that reason or another, the server may continue it for a while without the lock.
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
		s := &unaryClient{section: section{config: cfg, call: call}, reply: reply, cc: cc, invoker: invoker, opts: opts}
		s.work = s
		return s.hold(ctx, a)
	}
}

// unaryClient is a unary call on a client.
type unaryClient struct {
	section
	reply   any
	cc      *grpc.ClientConn
	invoker grpc.UnaryInvoker
	opts    []grpc.CallOption
}

// do implements work.
func (s *unaryClient) do(ctx context.Context) error {
	return s.failures.Overdue(ctx, s.invoker(s.send(ctx), s.call.FullMethod, s.call.Request, s.reply, s.cc, s.opts...))
}
