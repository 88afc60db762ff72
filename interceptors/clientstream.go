package interceptors

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// StreamClientInterceptor holds a lock during a stream, for servers that do not lock.
// pick chooses the lock, by method and metadata or, with WithFirstMessage, by the first
// message. If it returns nil, the stream is opened without a lock.
//
// The lock is released once, as soon as the stream has ended. That is when
//
//   - RecvMsg has returned io.EOF or another error, or the only message of a method
//     whose server sends one message;
//   - Header has found that the server sent no header;
//   - SendMsg has failed, also with io.EOF;
//   - the stream could not be opened, its context has ended, or the connection was
//     closed.
//
// A stream that is abandoned without any of these holds its lock forever, and the
// resources of gRPC too. So cancel its context.
//
// The stream ends when the lock is lost. Like any stream that the client gives up, it may
// continue on the server for a while, without the lock.
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
			// No method of the stream reports that the connection was closed.
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
		if a == protolock.NoMessage {
			a = protolock.TooEarly
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

// clientStream is a stream that holds a lock.
type clientStream struct {
	*config
	call   Call
	caller context.Context // the caller's context
	stream func(context.Context) (grpc.ClientStream, error)

	// The other fields are set by open before opened is closed, and do not change
	// after that. held is set before anything can end the stream.
	opened  chan struct{}
	inner   grpc.ClientStream // nil if the stream could not be opened
	failed  error             // why it could not
	late    *holding.Context  // nil if the stream has no lock
	held    *holding.Hold     // nil if the stream has no lock
	forsake func() bool       // stops the release at the end of the context
}

var _ grpc.ClientStream = (*clientStream)(nil)

// errNotOpened is the error of a stream if a panic occurred while it was opened.
var errNotOpened = status.Error(codes.Internal, "the stream was not opened")

// open acquires the lock and opens the stream. It is called once. With WithFirstMessage
// the first SendMsg or CloseSend calls it; two goroutines must not call these at once.
func (s *clientStream) open(a zklock.Acquirer) error {
	s.failed = errNotOpened
	defer func() {
		if s.failed == errNotOpened { // a panic
			_ = s.giveBack()
			if s.late != nil {
				s.late.Cancel(errNotOpened)
			}
		}
		close(s.opened)
	}()
	if a == nil {
		s.inner, s.failed = s.stream(s.caller)
		return s.failed
	}
	s.late = holding.NewContext(s.caller)
	held, err := s.take(s.late, s.call, a, served.Limit{})
	if err != nil {
		s.late.Cancel(err)
		s.failed = s.refuse(s.caller, s.call, err)
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

// openWith picks by the first message m, which is nil if there is none, and opens the
// stream.
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

// await waits until the stream is open. It returns an error if the stream could not be
// opened.
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

// giveBack releases the lock, if there is one. Further calls do nothing.
func (s *clientStream) giveBack() error {
	if s.held == nil {
		return nil
	}
	return s.held.GiveBack()
}

// end releases the lock, because the stream has ended with err, and returns the error for
// the caller.
func (s *clientStream) end(err error) error {
	if s.held == nil {
		return err
	}
	released := s.giveBack()
	success := err == io.EOF
	if success {
		err = nil
	}
	err = s.failures.Settle(s.failures.Overdue(s.late, err), released)
	s.forsake()
	s.late.Cancel(context.Canceled)
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
	if s.held != nil {
		// The context may end a little later than the lease.
		if loss := holding.Loss(s.held.Lock()); loss != nil {
			return s.end(s.failures.Lost(loss))
		}
	}
	err := s.inner.SendMsg(m)
	switch err {
	case nil:
	case io.EOF:
		// The server has ended the call. RecvMsg still returns the messages that the
		// server sent before, and then the status.
		_ = s.giveBack()
	default:
		return s.end(err)
	}
	return err
}

// CloseSend implements grpc.ClientStream.
func (s *clientStream) CloseSend() error {
	if !s.isOpen() {
		_ = s.openWith(nil) // RecvMsg returns the error
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
		// The stream has ended, with a status that RecvMsg returns.
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
