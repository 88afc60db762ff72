package interceptors

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
)

// StreamServerInterceptor holds a lock during a stream, from before the handler is called
// until it has returned. pick chooses the lock by method and metadata; if it returns nil,
// the stream is served without a lock. With WithFirstMessage, pick chooses by the first
// message, and the lock is held from the return of the first RecvMsg.
//
// The stream's Context carries the lock. It is cancelled when the lock is lost, with the
// loss as its cause. From then on SendMsg and RecvMsg fail. A RecvMsg that is waiting for
// a message from the client fails at once, and the handler must not use the message that
// it passed to RecvMsg again. A SendMsg that is waiting for the client to read continues
// to wait, unless there is a WithMaxHold: then it ends a little after the stream's Context, and the handler must not
// use its message again. A RecvMsg that waits also ends when the stream's Context ends for another reason.
//
// It panics if pick is nil.
func StreamServerInterceptor(pick Pick, opts ...Option) grpc.StreamServerInterceptor {
	cfg := newConfig("StreamServerInterceptor", pick, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, limit := served.LimitOf(ss.Context(), cfg.writeTimeout)
		call := Call{FullMethod: info.FullMethod, Metadata: incoming(ctx), ClientStream: info.IsClientStream, ServerStream: info.IsServerStream}
		if err := cfg.checkSequencers(ctx, call); err != nil {
			return cfg.refuse(ctx, call, err)
		}
		ctx, called := cfg.withCaller(ctx, call)
		if called || limit != (served.Limit{}) {
			ss = &calledStream{ss, ctx}
		}
		if cfg.firstMessage {
			return cfg.serveFirst(srv, ss, call, limit, handler)
		}
		a := cfg.pick(ctx, call)
		if a == nil {
			return handler(srv, ss)
		}
		if a == protolock.NoMessage {
			a = protolock.TooEarly
		}
		s := &streamServer{section: section{config: cfg, call: call, limit: limit, checks: true}, srv: srv, stream: ss, handler: handler}
		s.work = s
		return s.hold(ctx, a)
	}
}

// streamServer is a stream on a server.
type streamServer struct {
	section
	srv     any
	stream  grpc.ServerStream
	handler grpc.StreamHandler
}

// do implements work.
func (s *streamServer) do(ctx context.Context) error {
	locked := &holding.Stream{Errors: s.failures, Ctx: ctx, Inner: s.stream.RecvMsg, Waits: s.call.ClientStream, Logger: s.logger, Room: s.room()}
	locked.Hold(s.lock) // the context does not carry a lock that was lost
	return s.handler(s.srv, &serverStream{s.stream, locked})
}

// serverStream is the stream that a handler gets instead of the server's.
type serverStream struct {
	grpc.ServerStream
	*holding.Stream
}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.Ctx }

// SendMsg implements grpc.ServerStream.
func (s *serverStream) SendMsg(m any) error { return s.Send(m, s.ServerStream.SendMsg) }

// RecvMsg implements grpc.ServerStream.
func (s *serverStream) RecvMsg(m any) error { return s.Receive(m) }
