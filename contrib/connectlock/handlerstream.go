package connectlock

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/zklock"
)

// handlerStream is the stream that a handler gets instead of connect's.
type handlerStream struct {
	connect.StreamingHandlerConn
	ctx    context.Context
	logger *slog.Logger
	lock   atomic.Pointer[zklock.Lock] // nil until the lock is acquired
	waits  bool                        // Receive may have to wait for the client

	// over is the error with which Receive fails for good. It has no guard, because two
	// goroutines must not call Receive at once.
	over error
}

// Send implements connect.StreamingHandlerConn.
func (s *handlerStream) Send(m any) error {
	if lock := s.lock.Load(); lock != nil {
		if err := stopped(lock); err != nil {
			return err
		}
	}
	return s.StreamingHandlerConn.Send(m)
}

// Receive implements connect.StreamingHandlerConn.
func (s *handlerStream) Receive(m any) error {
	lock := s.lock.Load()
	if lock == nil {
		return s.StreamingHandlerConn.Receive(m)
	}
	if s.over == nil {
		s.over = stopped(lock)
	}
	if s.over != nil {
		return s.over
	}
	if !s.waits {
		return s.StreamingHandlerConn.Receive(m)
	}
	// connect's Receive ends with the handler or the client, and not with s.ctx: a deadline
	// does not end the read of a request's body. This Receive has to end with s.ctx, so another
	// goroutine calls connect's. If that goroutine is left behind, the end of the request's body
	// wakes it when the handler has returned.
	got := holding.Aside(func() error { return s.StreamingHandlerConn.Receive(m) }, s.logPanic)
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
		// The handler has released the lock. From then on the stream is as connect's.
		return s.received(lock, <-got)
	default:
		// The client has canceled the call, or its deadline has passed. The lock is still
		// held, so the handler has to return now, and not when the client sends or goes.
		s.over = newError(codeOf(s.ctx.Err()), s.ctx.Err().Error(), errors.Join(errStopped, cause))
	}
	return s.over
}

// received ends a Receive as connect's has ended. The handler must not get a message that came
// when the lock was not held any more.
func (s *handlerStream) received(lock *zklock.Lock, r holding.Outcome) error {
	err := r.Return()
	if s.over = stopped(lock); s.over != nil {
		return s.over
	}
	return err
}

// logPanic logs a panic of connect's Receive.
func (s *handlerStream) logPanic(panicked any, stack string) {
	s.logger.ErrorContext(s.ctx, "connectlock: Receive of the handler's stream panicked", "panic", panicked, "stack", stack)
}
