package interceptors

import (
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/zklock"
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
		refusal, released := s.end()
		if refusal != nil {
			err = refusal // instead of the handler's error
			return
		}
		err = settle(err, released)
	}()
	return handler(srv, s)
}

// firstMessage is a handler's stream if the first message chooses the lock. The first
// RecvMsg acquires the lock. The handler may call it on another goroutine, and may return
// before it does.
//
// Invariant: an acquired lock is either in held before ended is set, so that end releases
// it, or the goroutine that acquired it releases it.
type firstMessage struct {
	serverStream
	*config
	call Call
	late *holding.Context

	mu     sync.Mutex
	asked  bool          // guarded by mu; there was a first RecvMsg
	ended  bool          // guarded by mu; the handler has returned
	held   *holding.Hold // guarded by mu
	failed error         // guarded by mu; why the lock was not acquired
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
	case io.EOF: // the pick may choose a lock without a message
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
	h, err := s.config.take(s.late, s.call, a)
	if err != nil {
		return s.refuse(s.ServerStream.Context(), s.call, err)
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
	// Check again: the guard may have seen a newer holder during the wait.
	if err := s.checkSequencers(s.late, s.call); err != nil {
		return s.refuse(s.late, s.call, err)
	}
	s.lock.Store(h.Lock())
	return stopped(h.Lock())
}

// end is called when the handler has returned or panics. refusal is the reason why the
// stream did not get its lock. released is the error of the release of a lock that it
// got.
func (s *firstMessage) end() (refusal, released error) {
	s.mu.Lock()
	s.ended = true
	h, failed := s.held, s.failed
	s.mu.Unlock()
	// This ends the wait for the lock of a RecvMsg that has not returned yet.
	defer s.late.Cancel(errReturned)
	if h != nil {
		released = h.GiveBack()
	}
	if errors.Is(failed, zklock.ErrLost) && errors.Is(released, zklock.ErrLost) {
		failed = nil // settle reports the same loss, together with the handler's error
	}
	return failed, released
}
