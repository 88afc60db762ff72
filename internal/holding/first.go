package holding

import (
	"cmp"
	"errors"
	"io"
	"sync"

	"github.com/zklock/go-zklock/zklock"
)

// first is the lock of a handler's stream if the stream's first message chooses it. The handler
// may receive that message on another goroutine, and may return before it arrives. The zero
// value is ready for use.
//
// Invariant: an acquired lock is either in held before ended is set, so that End releases it, or
// Keep releases it.
type first struct {
	mu     sync.Mutex
	asked  bool  // guarded by mu; the handler has asked for the first message
	ended  bool  // guarded by mu; the handler has returned
	held   *Hold // guarded by mu
	failed error // guarded by mu; why the lock was not acquired
	unread error // guarded by mu; why there was no first message to choose the lock
}

// Begins reports whether a handler that asks for a message asks for the first one. Then the caller
// receives it and calls Take. err is the error of a Take before, io.EOF excepted: the handler gets
// no message.
func (f *first) Begins() (begins bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begins = !f.asked
	f.asked = true
	return begins, cmp.Or(f.failed, f.unread)
}

// Take acquires the lock when the first message was received, or when the stream has ended without
// one: received is nil or io.EOF. take acquires the lock and passes it to Keep. Take returns the
// error of take, or else received. If the first message could not be received, the handler gets no
// other one: nothing has chosen the lock.
func (f *first) Take(received error, take func() error) error {
	if received != nil && !errors.Is(received, io.EOF) {
		f.mu.Lock()
		f.unread = received
		f.mu.Unlock()
		return received
	}
	if err := take(); err != nil {
		f.mu.Lock()
		f.failed = err
		f.mu.Unlock()
		return err
	}
	return received
}

// Keep keeps an acquired lock for End. If the handler has returned, Keep releases the lock, and
// returns false.
func (f *first) Keep(h *Hold) bool {
	f.mu.Lock()
	ended := f.ended
	if !ended {
		f.held = h
	}
	f.mu.Unlock()
	if ended {
		_ = h.GiveBack() // the handler has returned, so an error cannot be reported
	}
	return !ended
}

// End is for the time when the handler has returned or panics. refusal is the error of take.
// released is the error of the release of the lock, if there was one.
func (f *first) End() (refusal, released error) {
	f.mu.Lock()
	f.ended = true
	h, refusal := f.held, f.failed
	f.mu.Unlock()
	if h != nil {
		released = h.GiveBack()
	}
	if errors.Is(refusal, zklock.ErrLost) && errors.Is(released, zklock.ErrLost) {
		refusal = nil // the release reports the same loss, and the caller adds the handler's error
	}
	return refusal, released
}
