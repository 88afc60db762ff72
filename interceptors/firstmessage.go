package interceptors

import (
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/zklock"
)

// errReturned is the error of a first RecvMsg after the handler's end.
var errReturned = status.Error(codes.Canceled, "the handler of this stream has returned")

// serveFirst serves a stream that is locked by its first message.
func (c *config) serveFirst(srv any, ss grpc.ServerStream, call Call, handler grpc.StreamHandler) (err error) {
	ctx := newLateContext(ss.Context())
	s := &firstMessage{
		serverStream: serverStream{ServerStream: ss, ctx: ctx, logger: c.logger, waits: call.ClientStream},
		config:       c, call: call, late: ctx,
	}
	defer func() {
		refusal, released := s.end()
		if refusal != nil {
			err = refusal // whatever the handler has made of it
			return
		}
		err = settle(err, released)
	}()
	return handler(srv, s)
}

// firstMessage is the stream that a handler gets which is locked by its first
// message. The lock is taken by the first RecvMsg, which may be called by
// another goroutine than the handler's, and still be under way when the handler
// has returned.
//
// Invariant: a lock that was acquired is either in held before ended is set, so
// that end gives it back, or given back by the one who acquired it.
type firstMessage struct {
	serverStream
	*config
	call Call
	late *lateContext

	mu     sync.Mutex
	asked  bool  // guarded by mu; there was a first RecvMsg
	ended  bool  // guarded by mu; the handler has returned
	held   *hold // guarded by mu
	failed error // guarded by mu; why there is no lock where there should be one
}

// RecvMsg implements grpc.ServerStream.
func (s *firstMessage) RecvMsg(m any) error {
	s.mu.Lock()
	first, failed := !s.asked, s.failed
	s.asked = true
	s.mu.Unlock()
	switch {
	case failed != nil:
		return failed
	case !first:
		return s.serverStream.RecvMsg(m)
	}
	received := s.ServerStream.RecvMsg(m)
	switch received {
	case nil:
		s.call.Request = m
	case io.EOF: // there is something to lock all the same, maybe
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

// take picks and takes the lock.
func (s *firstMessage) take() error {
	a := s.pick(s.late, s.call)
	if a == nil {
		return nil
	}
	h, err := s.config.take(s.late, s.call, a)
	if err != nil {
		return s.refuse(s.ServerStream.Context(), err)
	}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.held = h
	}
	s.mu.Unlock()
	if ended {
		_ = h.giveBack() // nobody is there to be told
		return errReturned
	}
	// Again, since somebody newer may have been here while we waited.
	if err := s.checkSequencers(s.late, s.call); err != nil {
		return s.refuse(s.late, err)
	}
	s.lock.Store(h.lock)
	return stopped(h.lock)
}

// end is called when the handler has returned or panics. It returns why the
// stream did not get its lock, and what came of the release of one that it got.
func (s *firstMessage) end() (refusal, released error) {
	s.mu.Lock()
	s.ended = true
	h, failed := s.held, s.failed
	s.mu.Unlock()
	// Ends the wait for the lock of a RecvMsg that was left behind.
	defer s.late.cancel(errReturned)
	if h != nil {
		released = h.giveBack()
	}
	if errors.Is(failed, zklock.ErrLost) && errors.Is(released, zklock.ErrLost) {
		failed = nil // settle tells the same, with what the handler made of it
	}
	return failed, released
}
