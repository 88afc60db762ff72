package connectlock

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// clientStream is a client's stream that holds a lock. connect sends the request with the first
// Send, so that callers can set its header before. The first Send acquires the lock.
type clientStream struct {
	connect.StreamingClientConn
	*config
	call   Call
	caller context.Context // the caller's context
	late   *holding.Context

	once   sync.Once     // for begin
	begun  chan struct{} // closed when begin has returned
	failed error         // why the stream has no lock that it needs; set before begun is closed
	held   *holding.Hold // nil if the stream has no lock; set before begun is closed

	forsake func() bool // stops the release at the end of the context; set before begun is closed
}

func newClientStream(ctx context.Context, c *config, next connect.StreamingClientFunc, spec connect.Spec) *clientStream {
	late := holding.NewContext(ctx)
	conn := next(late, spec)
	return &clientStream{
		StreamingClientConn: conn, config: c, call: newCall(spec, conn.RequestHeader()),
		caller: ctx, late: late, begun: make(chan struct{}), forsake: func() bool { return true },
	}
}

// begin acquires the lock, for the first message m, or for none. Of several calls the first one
// does; the others wait for it.
func (s *clientStream) begin(m any) error {
	s.once.Do(func() {
		s.failed = connect.NewError(connect.CodeInternal, errors.New("the stream was not begun")) // if a panic occurs
		defer close(s.begun)
		s.call.Request = m
		a := s.pick(s.caller, s.call)
		if a == nil {
			s.failed = nil
			return
		}
		a, opts := s.acquisition(s.caller, s.call, a, served.Limit{})
		held, err := holding.Take(s.late, a, s.maxHold, opts...)
		if err != nil {
			s.failed = s.refuse(s.late, s.call.Procedure, err)
			return
		}
		s.held, s.failed = held, nil
		s.forsake = context.AfterFunc(s.late, func() { _ = held.GiveBack() })
	})
	return s.failed
}

// settled releases the lock, because the stream has ended with err, and returns the error for
// the caller.
func (s *clientStream) settled(err error) error {
	if s.held == nil {
		return err
	}
	released := s.held.GiveBack()
	if !errors.Is(err, io.EOF) {
		return s.failures.Settle(s.failures.Overdue(s.late, err), released)
	}
	if lost := s.failures.Settle(nil, released); lost != nil {
		return lost
	}
	return err
}

// finish gives back what the stream's context holds.
func (s *clientStream) finish() {
	s.forsake()
	s.late.Cancel(context.Canceled)
}

// Send implements connect.StreamingClientConn.
func (s *clientStream) Send(m any) error {
	if err := s.begin(m); err != nil {
		return err
	}
	if s.held != nil {
		// The context may end a little later than the lease.
		if loss := holding.Loss(s.held.Lock()); loss != nil {
			return s.settled(s.failures.Lost(loss))
		}
	}
	err := s.StreamingClientConn.Send(m)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		// The server has ended the call. Receive still returns the messages that the server
		// sent before, and then the error.
		if s.held != nil {
			_ = s.held.GiveBack()
		}
	default:
		return s.settled(err)
	}
	return err
}

// CloseRequest implements connect.StreamingClientConn.
func (s *clientStream) CloseRequest() error {
	if err := s.begin(nil); err != nil {
		return err
	}
	return s.StreamingClientConn.CloseRequest()
}

// await waits until the stream has begun. It returns an error if the stream will never begin:
// connect's methods would wait for its response forever.
func (s *clientStream) await() error {
	select {
	case <-s.begun:
		return s.failed
	case <-s.caller.Done():
	}
	return connect.NewError(codeOf(s.caller.Err()), s.caller.Err())
}

// Receive implements connect.StreamingClientConn.
func (s *clientStream) Receive(m any) error {
	if err := s.await(); err != nil {
		return err
	}
	err := s.receive(m)
	if err != nil {
		err = s.settled(err)
		s.finish()
	}
	return err
}

// receive receives a message, or returns when the stream's context ends. net/http does not
// notice the end of a request's context while it waits for more of the request's body. So a
// stream with a lock, which has to end with it, receives on another goroutine. If that
// goroutine is left behind, CloseRequest wakes it.
func (s *clientStream) receive(m any) error {
	if s.held == nil || !s.call.ClientStream {
		return s.StreamingClientConn.Receive(m)
	}
	got := holding.Aside(func() error { return s.StreamingClientConn.Receive(m) }, s.logPanic)
	select {
	case r := <-got:
		return r.Return()
	case <-s.late.Done():
	}
	return connect.NewError(codeOf(s.late.Err()), context.Cause(s.late))
}

// logPanic logs a panic of connect's Receive.
func (s *clientStream) logPanic(panicked any, stack string) {
	s.logger.ErrorContext(s.caller, "connectlock: Receive of the client's stream panicked", "panic", panicked, "stack", stack)
}

// codeOf returns the code of a context's error.
func codeOf(err error) connect.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return connect.CodeDeadlineExceeded
	}
	return connect.CodeCanceled
}

// ResponseHeader implements connect.StreamingClientConn.
func (s *clientStream) ResponseHeader() http.Header {
	if s.await() != nil {
		return make(http.Header)
	}
	return s.StreamingClientConn.ResponseHeader()
}

// ResponseTrailer implements connect.StreamingClientConn.
func (s *clientStream) ResponseTrailer() http.Header {
	if s.await() != nil {
		return make(http.Header)
	}
	return s.StreamingClientConn.ResponseTrailer()
}

// errClosed is the cause of a stream that was closed before its first message.
var errClosed = errors.New("the stream was closed before its first message")

// CloseResponse implements connect.StreamingClientConn.
func (s *clientStream) CloseResponse() error {
	select {
	case <-s.begun:
	default:
		s.late.Cancel(errClosed) // ends a wait for the lock
		s.once.Do(func() {
			s.failed = connect.NewError(connect.CodeCanceled, errClosed)
			close(s.begun)
		})
	}
	defer s.finish()
	if s.failed != nil {
		return nil // there is no response
	}
	err := s.StreamingClientConn.CloseResponse()
	if s.held != nil {
		if released := s.held.GiveBack(); err == nil && errors.Is(released, zklock.ErrLost) {
			err = s.failures.Lost(released)
		}
	}
	return err
}
