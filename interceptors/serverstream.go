package interceptors

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/zklock"
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
// to wait. A RecvMsg that waits also ends when the stream's Context ends for another reason.
//
// It panics if pick is nil.
func StreamServerInterceptor(pick Pick, opts ...Option) grpc.StreamServerInterceptor {
	cfg := newConfig("StreamServerInterceptor", pick, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := ss.Context()
		call := Call{FullMethod: info.FullMethod, Metadata: incoming(ctx), ClientStream: info.IsClientStream, ServerStream: info.IsServerStream}
		if err := cfg.checkSequencers(ctx, call); err != nil {
			return cfg.refuse(ctx, call, err)
		}
		if cfg.firstMessage {
			return cfg.serveFirst(srv, ss, call, handler)
		}
		a := cfg.pick(ctx, call)
		if a == nil {
			return handler(srv, ss)
		}
		if a == protolock.NoMessage {
			a = protolock.TooEarly
		}
		s := &streamServer{section: section{config: cfg, call: call, checks: true}, srv: srv, stream: ss, handler: handler}
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
	locked := &serverStream{ServerStream: s.stream, ctx: ctx, logger: s.logger, waits: s.call.ClientStream}
	lock, _ := zklock.FromContext(ctx)
	locked.lock.Store(lock)
	return s.handler(s.srv, locked)
}

// serverStream is the stream that a handler gets instead of the server's.
type serverStream struct {
	grpc.ServerStream
	ctx    context.Context
	logger *slog.Logger
	lock   atomic.Pointer[zklock.Lock] // nil until the lock is acquired
	waits  bool                        // RecvMsg may have to wait for the client

	// over is the error with which RecvMsg fails for good. It has no guard, because
	// two goroutines must not call RecvMsg at once.
	over error
}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ServerStream.
func (s *serverStream) SendMsg(m any) error {
	if lock := s.lock.Load(); lock != nil {
		if err := stopped(lock); err != nil {
			return err
		}
	}
	return s.ServerStream.SendMsg(m)
}

// RecvMsg implements grpc.ServerStream.
func (s *serverStream) RecvMsg(m any) error {
	lock := s.lock.Load()
	if lock == nil {
		return s.ServerStream.RecvMsg(m)
	}
	if s.over == nil {
		s.over = stopped(lock)
	}
	if s.over != nil {
		return s.over
	}
	if !s.waits {
		return s.ServerStream.RecvMsg(m)
	}
	// The server's RecvMsg ends with the handler or the client, and not with s.ctx.
	// This RecvMsg has to end with s.ctx, so another goroutine calls the server's. If
	// that goroutine is left behind, the server wakes it when the handler has returned.
	got := holding.Aside(func() error { return s.ServerStream.RecvMsg(m) }, s.logPanic)
	select {
	case r := <-got:
		return s.received(lock, r)
	case <-s.ctx.Done():
	}
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, zklock.ErrLost):
		s.over = lost(errors.Join(errStopped, cause))
	case cause == zklock.ErrMaxHold:
		s.over = tooLong(errStopped)
	case errors.Is(lock.Err(), zklock.ErrReleased):
		// The handler has released the lock. From then on the stream is as the server's.
		return s.received(lock, <-got)
	default:
		// The client has canceled the call, or its deadline has passed. The lock is
		// still held, so the handler has to return now, and not when the client
		// sends or goes.
		s.over = &statusError{status.FromContextError(s.ctx.Err()), errors.Join(errStopped, cause)}
	}
	return s.over
}

// received ends a RecvMsg as the server's has ended. The handler must not get a message
// that came when the lock was not held any more.
func (s *serverStream) received(lock *zklock.Lock, r holding.Outcome) error {
	err := r.Return()
	if s.over = stopped(lock); s.over != nil {
		return s.over
	}
	return err
}

// logPanic logs a panic of the server's RecvMsg.
func (s *serverStream) logPanic(panicked any, stack string) {
	s.logger.ErrorContext(s.ctx, "interceptors: RecvMsg of the server's stream panicked", "panic", panicked, "stack", stack)
}
