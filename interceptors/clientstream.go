package interceptors

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/zklock"
)

// StreamClientInterceptor holds a lock around a stream: for servers that do not
// lock by themselves. pick says which, by method and metadata or, with
// WithFirstMessage, by the first message; nil lets the stream pass without one.
//
// The lock is given back once, as soon as the stream has come to its end:
// RecvMsg returned io.EOF or another error, or the one answer of a method that
// sends no more; Header found that there is none; SendMsg failed, be it with
// io.EOF; the stream could not be opened; its context ended; the connection was
// closed. A stream that is left alone without any of these holds its lock for
// ever, as it holds what gRPC needs for it: cancel its context.
//
// The stream ends when the lock is lost. It may go on on the server for a while,
// as may any stream that is given up by the client, without the lock.
//
// It panics if pick is nil.
func StreamClientInterceptor(pick Pick, opts ...Option) grpc.StreamClientInterceptor {
	cfg := newConfig("StreamClientInterceptor", pick, opts)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s := &clientStream{
			config: cfg,
			call:   Call{FullMethod: method, Metadata: outgoing(ctx), ClientStream: desc.ClientStreams, ServerStream: desc.ServerStreams},
			caller: ctx,
			opened: make(chan struct{}),
		}
		s.stream = func(ctx context.Context) (grpc.ClientStream, error) {
			// Of the ends of a stream, this one shows nowhere else.
			closed := grpc.OnFinish(func(error) {
				if cc != nil && cc.GetState() == connectivity.Shutdown {
					_ = s.giveBack()
				}
			})
			return streamer(cfg.send(ctx), desc, cc, method, append(opts[:len(opts):len(opts)], closed)...)
		}
		if cfg.firstMessage {
			return s, nil
		}
		a := cfg.pick(ctx, s.call)
		if a == noMessage {
			a = tooEarly
		}
		if a == nil {
			return streamer(cfg.send(ctx), desc, cc, method, opts...)
		}
		if err := s.open(a); err != nil {
			return nil, err
		}
		return s, nil
	}
}

// clientStream is a stream that a lock is held around.
type clientStream struct {
	*config
	call   Call
	caller context.Context // of the one who wants the stream
	stream func(context.Context) (grpc.ClientStream, error)

	// What follows is set by open before opened is closed, and immutable after;
	// held is set before anything can end the stream.
	opened  chan struct{}
	inner   grpc.ClientStream // nil if the stream could not be opened
	failed  error             // why not
	late    *lateContext      // nil if there is no lock
	held    *hold             // likewise
	forsake func() bool       // no more giving back when the context ends
}

var _ grpc.ClientStream = (*clientStream)(nil)

// errNotOpened is the error of a stream whose opening has panicked.
var errNotOpened = status.Error(codes.Internal, "the stream was not opened")

// open takes the lock and opens the stream, once: it is called by the first
// SendMsg or CloseSend, which must not be called by two at a time.
func (s *clientStream) open(a zklock.Acquirer) error {
	s.failed = errNotOpened
	defer func() {
		if s.failed == errNotOpened { // something has panicked
			_ = s.giveBack()
			if s.late != nil {
				s.late.cancel(errNotOpened)
			}
		}
		close(s.opened)
	}()
	if a == nil {
		s.inner, s.failed = s.stream(s.caller)
		return s.failed
	}
	s.late = newLateContext(s.caller)
	held, err := s.take(s.late, s.call, a)
	if err != nil {
		s.late.cancel(err)
		s.failed = s.refuse(s.caller, err)
		return s.failed
	}
	s.held = held
	s.forsake = context.AfterFunc(s.late, func() { _ = s.giveBack() })
	inner, err := s.stream(s.late)
	if err != nil {
		s.failed = s.end(err)
		return s.failed
	}
	s.inner, s.failed = inner, nil
	return nil
}

// openWith picks by the first message, or by none, and opens the stream.
func (s *clientStream) openWith(m any) error {
	s.call.Request = m
	return s.open(s.pick(s.caller, s.call))
}

// isOpen reports whether open has been called and has returned.
func (s *clientStream) isOpen() bool {
	select {
	case <-s.opened:
		return true
	default:
		return false
	}
}

// await waits until the stream is open, and returns why it is not to be.
func (s *clientStream) await() error {
	select {
	case <-s.opened:
	case <-s.caller.Done():
		if !s.isOpen() {
			return status.FromContextError(s.caller.Err()).Err()
		}
	}
	return s.failed
}

// giveBack releases the lock, if there is one and that has not been done.
func (s *clientStream) giveBack() error {
	if s.held == nil {
		return nil
	}
	return s.held.giveBack()
}

// end gives the lock back since the stream has come to its end with err, and
// returns what to tell the caller.
func (s *clientStream) end(err error) error {
	if s.held == nil {
		return err
	}
	released := s.giveBack()
	success := err == io.EOF
	if success {
		err = nil
	}
	err = settle(overdue(s.late, err), released)
	s.forsake()
	s.late.cancel(context.Canceled)
	if success && err == nil {
		return io.EOF
	}
	return err
}

// Context implements grpc.ClientStream.
func (s *clientStream) Context() context.Context {
	switch {
	case !s.isOpen() || s.inner == nil:
		return s.caller
	default:
		return s.inner.Context()
	}
}

// SendMsg implements grpc.ClientStream.
func (s *clientStream) SendMsg(m any) error {
	if !s.isOpen() {
		if err := s.openWith(m); err != nil {
			return err
		}
	}
	if s.inner == nil {
		return s.failed
	}
	err := s.inner.SendMsg(m)
	switch err {
	case nil:
	case io.EOF:
		// The server is done with the call. What it has sent before can still be
		// received, and so can the status, with which RecvMsg ends the rest.
		_ = s.giveBack()
	default:
		return s.end(err)
	}
	return err
}

// CloseSend implements grpc.ClientStream.
func (s *clientStream) CloseSend() error {
	if !s.isOpen() {
		_ = s.openWith(nil) // RecvMsg tells
	}
	if s.inner == nil {
		return nil
	}
	return s.inner.CloseSend()
}

// Header implements grpc.ClientStream.
func (s *clientStream) Header() (metadata.MD, error) {
	if err := s.await(); err != nil {
		return nil, err
	}
	md, err := s.inner.Header()
	switch {
	case err != nil:
		return md, s.end(err)
	case md == nil:
		// The stream has ended, with a status that RecvMsg tells.
		_ = s.giveBack()
	}
	return md, nil
}

// Trailer implements grpc.ClientStream.
func (s *clientStream) Trailer() metadata.MD {
	if !s.isOpen() || s.inner == nil {
		return nil
	}
	return s.inner.Trailer()
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	if err := s.await(); err != nil {
		return err
	}
	err := s.inner.RecvMsg(m)
	if err == nil && s.call.ServerStream {
		return nil
	}
	return s.end(err)
}
