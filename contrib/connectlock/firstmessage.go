package connectlock

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
)

// errReturned is the cause of a first Receive that ends after the handler has returned.
var errReturned = errors.New("the handler of this stream has returned")

// serveFirst serves a stream whose first message chooses its lock.
func (c *config) serveFirst(parent context.Context, conn connect.StreamingHandlerConn, call Call, limit served.Limit, next connect.StreamingHandlerFunc) (err error) {
	ctx := holding.NewContext(parent)
	first := holding.NewFirstMessage(ctx, c.failures, conn.Receive, call.ClientStream, c.logger)
	s := &firstMessage{handlerStream: handlerStream{StreamingHandlerConn: conn, Stream: &first.Stream}, first: first, config: c, call: call, limit: limit, late: ctx}
	defer func() {
		err = first.End(err, errReturned)
		s.cut.Load().Stop() // behind End: from then on take keeps no lock
	}()
	return next(ctx, s)
}

// firstMessage is a handler's stream if the first message chooses the lock.
type firstMessage struct {
	handlerStream
	*config
	call  Call
	limit served.Limit
	late  *holding.Context
	first *holding.FirstMessage
}

// Receive implements connect.StreamingHandlerConn.
func (s *firstMessage) Receive(m any) error { return s.first.Receive(m, s.take) }

// take picks and acquires the lock.
func (s *firstMessage) take(request any) error {
	s.call.Request = request
	a := s.pick(s.late, s.call)
	if a == nil {
		return nil
	}
	a, opts := s.acquisition(s.late, s.call, a, s.limit)
	h, err := holding.Take(s.late, a, s.maxHold, opts...)
	if err != nil {
		return s.refuse(s.late, s.call.Procedure, err)
	}
	s.cut.Store(newCut(s.late, s.maxHold))
	if !s.first.Keep(h) {
		s.cut.Load().Stop()
		return connect.NewError(connect.CodeCanceled, errReturned)
	}
	s.Hold(h.Lock())
	return s.Stopped()
}
