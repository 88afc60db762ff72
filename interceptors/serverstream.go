package interceptors

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/zklock"
)

// StreamServerInterceptor holds a lock for the life of a stream, from before the
// handler is called until it has returned. pick says which, by method and
// metadata or, with WithFirstMessage, by the first message; nil lets the stream
// pass without one.
//
// The stream's Context carries the lock and is cancelled, with the cause, when
// the lock is lost. From then on SendMsg and RecvMsg fail, and a RecvMsg that
// waits for the client to send something fails at once; the message it was to
// fill must not be used again. A SendMsg that waits for the client to read goes
// on waiting.
//
// It panics if pick is nil.
func StreamServerInterceptor(pick Pick, opts ...Option) grpc.StreamServerInterceptor {
	cfg := newConfig("StreamServerInterceptor", pick, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := ss.Context()
		call := Call{FullMethod: info.FullMethod, Metadata: incoming(ctx), ClientStream: info.IsClientStream, ServerStream: info.IsServerStream}
		if err := cfg.checkSequencers(ctx, call); err != nil {
			return cfg.refuse(ctx, err)
		}
		if cfg.firstMessage {
			return cfg.serveFirst(srv, ss, call, handler)
		}
		a := cfg.pick(ctx, call)
		if a == nil {
			return handler(srv, ss)
		}
		if a == noMessage {
			a = tooEarly
		}
		s := &streamServer{section: section{config: cfg, call: call, checks: true}, srv: srv, stream: ss, handler: handler}
		s.work = s
		return s.hold(ctx, a)
	}
}

// streamServer is a stream that a server serves.
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
	lock   atomic.Pointer[zklock.Lock] // nil as long as there is none
	waits  bool                        // RecvMsg may have to wait for the client

	// over is why RecvMsg fails for good. It has no guard, since RecvMsg must
	// not be called by two at a time.
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
	// The server's stream ends with the handler or the client, and not with our
	// context. So that RecvMsg can, somebody else waits; who is left behind is
	// woken by the server when the handler has returned.
	got := make(chan received, 1)
	go s.receive(m, got)
	select {
	case r := <-got:
		return r.result()
	case <-s.ctx.Done():
	}
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, zklock.ErrLost):
		s.over = lost(errors.Join(errStopped, cause))
	case cause == zklock.ErrMaxHold:
		s.over = tooLong(errStopped)
	default:
		// The client has gone, which the server's stream knows too, or the
		// handler has released the lock.
		r := <-got
		return r.result()
	}
	return s.over
}

// receive is RecvMsg on a goroutine of its own, where nothing recovers: a panic
// there would end the process.
func (s *serverStream) receive(m any, got chan<- received) {
	var r received
	defer func() {
		if !r.returned {
			r.panicked = recover()
		}
		if r.panicked != nil {
			// Where it goes on, if the handler still waits, its stack is not known.
			s.logger.ErrorContext(s.ctx, "interceptors: RecvMsg of the stream inside panicked", "panic", r.panicked, "stack", string(debug.Stack()))
		}
		got <- r
	}()
	r.err = s.ServerStream.RecvMsg(m)
	r.returned = true
}

// received is what came of a receive.
type received struct {
	err      error
	returned bool // else it panicked, or ended its goroutine
	panicked any
}

// result ends in the way in which the receive has ended.
func (r *received) result() error {
	switch {
	case r.returned:
		return r.err
	case r.panicked != nil:
		panic(r.panicked)
	}
	runtime.Goexit()
	return nil
}
