package connectlock

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/internal/holding"
)

// errReturned is the cause of a first Receive that ends after the handler has returned.
var errReturned = errors.New("the handler of this stream has returned")

// serveFirst serves a stream whose first message chooses its lock.
func (c *config) serveFirst(parent context.Context, conn connect.StreamingHandlerConn, call Call, next connect.StreamingHandlerFunc) (err error) {
	ctx := holding.NewContext(parent)
	s := &firstMessage{
		handlerStream: handlerStream{StreamingHandlerConn: conn, ctx: ctx, logger: c.logger, waits: call.ClientStream},
		config:        c, call: call, late: ctx,
	}
	defer func() {
		// This ends the wait for the lock of a Receive that has not returned yet.
		defer ctx.Cancel(errReturned)
		refusal, released := s.first.End()
		if refusal != nil {
			err = refusal // instead of the handler's error
			return
		}
		err = settle(overdue(ctx, err), released)
	}()
	return next(ctx, s)
}

// firstMessage is a handler's stream if the first message chooses the lock. The first Receive
// acquires the lock. The handler may call it on another goroutine, and may return before it
// does.
type firstMessage struct {
	handlerStream
	*config
	call  Call
	late  *holding.Context
	first holding.First
}

// Receive implements connect.StreamingHandlerConn.
func (s *firstMessage) Receive(m any) error {
	begins, err := s.first.Begins()
	switch {
	case err != nil:
		return err
	case !begins:
		return s.handlerStream.Receive(m)
	}
	received := s.StreamingHandlerConn.Receive(m)
	if received == nil {
		s.call.Request = m
	}
	return s.first.Take(received, s.take)
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
		return s.refuse(s.late, s.call.Procedure, err)
	}
	if !s.first.Keep(h) {
		return connect.NewError(connect.CodeCanceled, errReturned)
	}
	s.lock.Store(h.Lock())
	return stopped(h.Lock())
}
