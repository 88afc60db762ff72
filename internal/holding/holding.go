// Package holding is shared by the adapters for streams. It holds a lock from one method call on
// a stream to a later one, where zklock.Do cannot be around both.
package holding

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Hold is a lock that is held until GiveBack. Like zklock.Do it releases the lock once, and reports
// a loss even if the handler has released the lock after it.
type Hold struct {
	lock   *zklock.Lock
	undo   func()        // stops the functions that would end the hold's context
	begun  atomic.Bool   // GiveBack was called
	done   chan struct{} // closed after err is set
	err    error         // the error of the release
	parent context.Context
}

// Take acquires a and makes ctx carry the lock. ctx ends when the lock is lost or revoked. If maxHold is
// greater than zero, ctx also ends when the lock was held for so long, with the cause
// zklock.ErrMaxHold.
func Take(ctx *Context, a zklock.Acquirer, maxHold time.Duration, opts ...zklock.AcquireOption) (*Hold, error) {
	lock, err := a.Acquire(ctx, opts...)
	if err != nil {
		return nil, err
	}
	h := &Hold{lock: lock, done: make(chan struct{}), parent: ctx}
	uncarry := ctx.carry(lock)
	h.undo = uncarry
	if maxHold > 0 {
		timer := time.AfterFunc(maxHold, func() { ctx.Cancel(zklock.ErrMaxHold) })
		h.undo = func() { timer.Stop(); uncarry() }
	}
	return h, nil
}

// Lock returns the lock.
func (h *Hold) Lock() *zklock.Lock { return h.lock }

// GiveBack releases the lock and returns the error of the release. Later calls wait for the first
// one, and return the same error. GiveBack does not use the caller's context, which may have ended:
// Release itself waits at most for the session timeout.
func (h *Hold) GiveBack() error {
	if !h.begun.CompareAndSwap(false, true) {
		<-h.done
		return h.err
	}
	h.err = h.lock.Release(context.WithoutCancel(h.parent))
	if loss := h.lock.Err(); errors.Is(h.err, zklock.ErrReleased) && errors.Is(loss, zklock.ErrLost) {
		h.err = loss // the handler has released the lock after the loss
	}
	h.undo()
	close(h.done)
	return h.err
}

// Context is the context of a stream that acquires its lock when the context is
// already in use. It ends with its parent or by Cancel. After Take it carries the
// lock, and so do contexts that were derived from it before.
type Context struct {
	context.Context // ends; has the parent's values
	cancel          context.CancelCauseFunc

	// carrier has the values of Context and the lock, and never ends. It does not
	// have the internal values of package context. So contexts that are derived
	// from this one always find Context, and end with it.
	carrier atomic.Pointer[context.Context]
}

// NewContext returns a context that does not carry a lock yet.
func NewContext(parent context.Context) *Context {
	ctx, cancel := context.WithCancelCause(parent)
	return &Context{Context: ctx, cancel: cancel}
}

// Cancel ends the context with a cause.
func (c *Context) Cancel(cause error) { c.cancel(cause) }

// Value implements context.Context.
func (c *Context) Value(key any) any {
	if carrier := c.carrier.Load(); carrier != nil {
		if v := (*carrier).Value(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}

// carry makes the context carry a lock, and end when the lock is lost or revoked. A release
// does not end the context: replies to messages that were sent while the lock was held may
// still arrive.
func (c *Context) carry(lock *zklock.Lock) (undo func()) {
	// The parent is c.Context and not c: c.Value asks carrier, which would ask c again.
	inner, cancel := lock.Context(c.Context)
	carrier := context.WithoutCancel(inner)
	c.carrier.Store(&carrier)
	stop := context.AfterFunc(inner, func() {
		if cause := context.Cause(inner); !errors.Is(cause, zklock.ErrReleased) {
			c.cancel(cause)
		}
	})
	return func() { stop(); cancel() }
}
