package interceptors

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
)

// errReturned is the error of a first RecvMsg that ends after the handler has returned.
var errReturned = status.Error(codes.Canceled, "the handler of this stream has returned")

// serveFirst serves a stream whose first message chooses its lock.
func (c *config) serveFirst(srv any, ss grpc.ServerStream, call Call, limit served.Limit, handler grpc.StreamHandler) (err error) {
	ctx := holding.NewContext(ss.Context())
	first := holding.NewFirstMessage(ctx, c.failures, ss.RecvMsg, call.ClientStream, c.logger)
	first.Room = c.room()
	s := &firstMessage{serverStream: serverStream{ss, &first.Stream}, first: first, config: c, call: call, limit: limit, late: ctx}
	defer func() { err = first.End(err, errReturned) }()
	return handler(srv, s)
}

// firstMessage is a handler's stream if the first message chooses the lock.
type firstMessage struct {
	serverStream
	*config
	call  Call
	limit served.Limit
	late  *holding.Context
	first *holding.FirstMessage
}

// RecvMsg implements grpc.ServerStream.
func (s *firstMessage) RecvMsg(m any) error { return s.first.Receive(m, s.take) }

// take picks and acquires the lock.
func (s *firstMessage) take(request any) error {
	s.call.Request = request
	a := s.pick(s.late, s.call)
	if a == nil {
		return nil
	}
	h, err := s.config.take(s.late, s.call, a, s.limit)
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
	s.Hold(h.Lock())
	return s.Stopped()
}
