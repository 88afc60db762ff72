package holding

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock"
)

// Stream ends the stream of a handler with its lock.
type Stream struct {
	Errors *Errors
	Ctx    context.Context   // of the handler
	Inner  func(m any) error // receives a message from the transport
	Waits  bool              // Inner may have to wait for the client
	Logger *slog.Logger

	// Room is for how long a Send may go on after the end of Ctx, or, if none was under way then, after the beginning of the first
	// one, which may be the last message; 0: for as long as the client does not read.
	Room time.Duration

	lock atomic.Pointer[zklock.Lock] // nil until the lock is acquired

	// over is the error that ended Receive for good. It has no guard, because two goroutines
	// must not call Receive at once.
	over error

	// until is when the Room is over; zero before it has begun. stuck is the error of a Send that was left behind, or refused
	// behind that time. They have no guard, because two goroutines must not call Send at once.
	until time.Time
	stuck error
}

// Hold notes the lock of the stream.
func (s *Stream) Hold(lock *zklock.Lock) { s.lock.Store(lock) }

// Stopped returns an error if the handler must stop sending; nil if it may continue.
func (s *Stream) Stopped() error { return s.Errors.Stopped(s.lock.Load()) }

// Receive receives a message for the handler. It fails at once when the lock is lost or the
// handler's context has ended.
func (s *Stream) Receive(m any) error {
	lock := s.lock.Load()
	if lock == nil {
		return s.Inner(m)
	}
	if s.over == nil {
		s.over = s.Errors.Stopped(lock)
	}
	if s.over != nil {
		return s.over
	}
	if !s.Waits {
		return s.Inner(m)
	}
	// Inner ends with the handler or the client, and not with Ctx: a deadline does not end a read
	// of the request's body, for example. Receive must end with Ctx, so another goroutine calls
	// Inner. If that goroutine is left behind, the transport wakes it when the handler has
	// returned.
	got := Aside(func() error { return s.Inner(m) }, s.logPanic)
	select {
	case r := <-got:
		return s.received(lock, r)
	case <-s.Ctx.Done():
	}
	if s.over = s.ended(lock); s.over == nil {
		return s.received(lock, <-got)
	}
	return s.over
}

// ended returns the error of an operation that has ended because Ctx has. It returns nil if the handler has
// released the lock: from then on the stream is as the transport's.
func (s *Stream) ended(lock *zklock.Lock) error {
	switch cause := context.Cause(s.Ctx); {
	case errors.Is(cause, zklock.ErrLost):
		return s.Errors.Lost(oneline.Join(s.Errors.stopped(), cause))
	case cause == zklock.ErrMaxHold:
		return s.Errors.TooLong(s.Errors.stopped())
	case errors.Is(lock.Err(), zklock.ErrReleased):
		return nil
	default:
		// The client has canceled the call, its deadline has passed, or the lock was revoked.
		// The lock is still held, so the handler must return now, and not when the client
		// sends, reads or goes.
		return s.Errors.Ended(s.Ctx.Err(), oneline.Join(s.Errors.stopped(), cause))
	}
}

// Send sends a message of the handler by inner. It fails at once when the lock is lost. With Room it also ends
// soon after Ctx has: inner waits for the client to read, and a client may never do that, or a handler may send for ever. An inner
// that is left behind ends with the stream, when the handler has returned.
func (s *Stream) Send(m any, inner func(any) error) error {
	if s.stuck != nil {
		return s.stuck
	}
	lock := s.lock.Load()
	if err := s.Errors.Stopped(lock); err != nil {
		return err
	}
	if lock == nil || s.Room <= 0 {
		return inner(m)
	}
	if !s.until.IsZero() && !time.Now().Before(s.until) {
		if s.stuck = s.ended(lock); s.stuck != nil {
			return s.stuck
		}
		return inner(m)
	}
	got := Aside(func() error { return inner(m) }, s.logPanic)
	if s.Ctx.Err() == nil {
		select {
		case r := <-got:
			return r.Return()
		case <-s.Ctx.Done():
		}
	}
	if s.until.IsZero() {
		s.until = time.Now().Add(s.Room)
	}
	late := time.NewTimer(time.Until(s.until))
	defer late.Stop()
	select {
	case r := <-got:
		return r.Return()
	case <-late.C:
	}
	if s.stuck = s.ended(lock); s.stuck == nil {
		r := <-got
		return r.Return()
	}
	return s.stuck
}

// received ends a Receive as Inner has ended. The handler must not get a message that arrived
// when the lock was not held.
func (s *Stream) received(lock *zklock.Lock, r Outcome) error {
	err := r.Return()
	if s.over = s.Errors.Stopped(lock); s.over != nil {
		return s.over
	}
	return err
}

func (s *Stream) logPanic(panicked any, stack string) {
	s.Logger.ErrorContext(s.Ctx, s.Errors.Package+": an operation on the stream of a client panicked", "panic", panicked, "stack", stack)
}

// FirstMessage is a Stream whose first message chooses the lock. The first Receive acquires the
// lock. The handler may call it on another goroutine, and may return before it does.
type FirstMessage struct {
	Stream
	first first
}

// NewFirstMessage returns a FirstMessage whose Ctx is ctx.
func NewFirstMessage(ctx *Context, e *Errors, inner func(any) error, waits bool, logger *slog.Logger) *FirstMessage {
	return &FirstMessage{Stream: Stream{Errors: e, Ctx: ctx, Inner: inner, Waits: waits, Logger: logger}}
}

// Receive is Stream.Receive. For the first message take acquires the lock, with the message, or
// with nil if the stream has ended without one; it passes the lock to Keep.
func (s *FirstMessage) Receive(m any, take func(request any) error) error {
	begins, err := s.first.Begins()
	switch {
	case err != nil:
		return err
	case !begins:
		return s.Stream.Receive(m)
	}
	received := s.Inner(m)
	if received != nil {
		m = nil
	}
	return s.first.Take(received, func() error { return take(m) })
}

// Keep notes the lock that take has acquired. It returns false if the handler has returned: then
// Keep has released the lock.
func (s *FirstMessage) Keep(h *Hold) bool { return s.first.Keep(h) }

// End returns the error of a handler that has returned err. It releases the lock, and ends the
// context with cause, and with it the wait for the lock of a Receive that has not returned yet.
func (s *FirstMessage) End(err, cause error) error {
	defer s.Ctx.(*Context).Cancel(cause)
	refusal, released := s.first.End()
	if refusal != nil {
		return refusal // instead of the handler's error
	}
	return s.Errors.Settle(s.Errors.Overdue(s.Ctx, err), released)
}
