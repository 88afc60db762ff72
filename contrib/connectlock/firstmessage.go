package connectlock

import (
	"context"
	"errors"
	"io"
	"sync"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/zklock"
)

// errReturned is the error of a first Receive that ends after the handler has returned.
var errReturned = connect.NewError(connect.CodeCanceled, errors.New("the handler of this stream has returned"))

// serveFirst serves a stream whose first message chooses its lock.
func (c *config) serveFirst(parent context.Context, conn connect.StreamingHandlerConn, call Call, next connect.StreamingHandlerFunc) (err error) {
	ctx := holding.NewContext(parent)
	s := &firstMessage{
		handlerStream: handlerStream{StreamingHandlerConn: conn, ctx: ctx, logger: c.logger, waits: call.ClientStream},
		config:        c, call: call, parent: parent, late: ctx,
	}
	defer func() {
		refusal, released := s.end()
		if refusal != nil {
			err = refusal // instead of the handler's error
			return
		}
		err = settle(err, released)
	}()
	return next(ctx, s)
}

// firstMessage is a handler's stream if the first message chooses the lock. The first Receive
// acquires the lock. The handler may call it on another goroutine, and may return before it
// does.
//
// Invariant: an acquired lock is either in held before ended is set, so that end releases it,
// or the goroutine that acquired it releases it.
type firstMessage struct {
	handlerStream
	*config
	call   Call
	parent context.Context
	late   *holding.Context

	mu     sync.Mutex
	asked  bool          // guarded by mu; there was a first Receive
	ended  bool          // guarded by mu; the handler has returned
	held   *holding.Hold // guarded by mu
	failed error         // guarded by mu; why the lock was not acquired
}

// Receive implements connect.StreamingHandlerConn.
func (s *firstMessage) Receive(m any) error {
	s.mu.Lock()
	first, failed := !s.asked, s.failed
	s.asked = true
	s.mu.Unlock()
	switch {
	case failed != nil:
		return failed
	case !first:
		return s.handlerStream.Receive(m)
	}
	received := s.StreamingHandlerConn.Receive(m)
	switch {
	case received == nil:
		s.call.Request = m
	case errors.Is(received, io.EOF): // the pick may choose a lock without a message
	default:
		return received
	}
	if err := s.take(); err != nil {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
		return err
	}
	return received
}

// take picks and acquires the lock.
func (s *firstMessage) take() error {
	a := s.pick(s.late, s.call)
	if a == nil {
		return nil
	}
	a, opts := s.acquisition(s.late, s.call, a)
	h, err := holding.Take(s.late, a, s.maxHold, opts...)
	if err != nil {
		return s.refuse(s.parent, s.call.Procedure, err)
	}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.held = h
	}
	s.mu.Unlock()
	if ended {
		_ = h.GiveBack() // the handler has returned, so an error cannot be reported
		return errReturned
	}
	s.lock.Store(h.Lock())
	return stopped(h.Lock())
}

// end is called when the handler has returned or panics. refusal is the reason why the stream
// did not get its lock. released is the error of the release of a lock that it got.
func (s *firstMessage) end() (refusal, released error) {
	s.mu.Lock()
	s.ended = true
	h, failed := s.held, s.failed
	s.mu.Unlock()
	// This ends the wait for the lock of a Receive that has not returned yet.
	defer s.late.Cancel(errReturned)
	if h != nil {
		released = h.GiveBack()
	}
	if errors.Is(failed, zklock.ErrLost) && errors.Is(released, zklock.ErrLost) {
		failed = nil // settle reports the same loss, together with the handler's error
	}
	return failed, released
}
