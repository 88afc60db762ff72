package interceptors

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/internal/holding"
)

// errReturned is the error of a first RecvMsg that ends after the handler has returned.
var errReturned = status.Error(codes.Canceled, "the handler of this stream has returned")

// serveFirst serves a stream whose first message chooses its lock.
func (c *config) serveFirst(srv any, ss grpc.ServerStream, call Call, handler grpc.StreamHandler) (err error) {
	ctx := holding.NewContext(ss.Context())
	s := &firstMessage{
		serverStream: serverStream{ServerStream: ss, ctx: ctx, logger: c.logger, waits: call.ClientStream},
		config:       c, call: call, late: ctx,
	}
	defer func() {
		// This ends the wait for the lock of a RecvMsg that has not returned yet.
		defer ctx.Cancel(errReturned)
		refusal, released := s.first.End()
		if refusal != nil {
			err = refusal // instead of the handler's error
			return
		}
		err = settle(overdue(ctx, err), released)
	}()
	return handler(srv, s)
}

// firstMessage is a handler's stream if the first message chooses the lock. The first
// RecvMsg acquires the lock. The handler may call it on another goroutine, and may return
// before it does.
type firstMessage struct {
	serverStream
	*config
	call  Call
	late  *holding.Context
	first holding.First
}

// RecvMsg implements grpc.ServerStream.
func (s *firstMessage) RecvMsg(m any) error {
	begins, err := s.first.Begins()
	switch {
	case err != nil:
		return err
	case !begins:
		return s.serverStream.RecvMsg(m)
	}
	received := s.ServerStream.RecvMsg(m)
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
	h, err := s.config.take(s.late, s.call, a)
	if err != nil {
		return s.refuse(s.ServerStream.Context(), s.call, err)
	}
	if !s.first.Keep(h) {
		return errReturned
	}
	// Check again: the guard may have seen a newer holder during the wait.
	if err := s.checkSequencers(s.late, s.call); err != nil {
		return s.refuse(s.late, s.call, err)
	}
	s.lock.Store(h.Lock())
	return stopped(h.Lock())
}
