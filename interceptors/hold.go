package interceptors

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// hold is a lock that is held from one method call on a stream to a later one, where
// zklock.Do cannot be around both. Like Do it releases the lock once.
type hold struct {
	lock   *zklock.Lock
	undo   func()        // stops the functions that would end the hold's context
	begun  atomic.Bool   // giveBack was called
	done   chan struct{} // closed after err is set
	err    error         // the error of the release
	parent context.Context
}

// take acquires a and makes ctx carry the lock. ctx ends when the lock is lost, or
// held for longer than WithMaxHold allows.
func (c *config) take(ctx *lateContext, call Call, a zklock.Acquirer) (*hold, error) {
	a, opts := c.acquisition(ctx, call, a)
	lock, err := a.Acquire(ctx, opts...)
	if err != nil {
		return nil, err
	}
	h := &hold{lock: lock, done: make(chan struct{}), parent: ctx}
	uncarry := ctx.carry(lock)
	h.undo = uncarry
	if c.maxHold > 0 {
		timer := time.AfterFunc(c.maxHold, func() { ctx.cancel(zklock.ErrMaxHold) })
		h.undo = func() { timer.Stop(); uncarry() }
	}
	return h, nil
}

// giveBack releases the lock, unless that was done before, and returns the error of
// the release. It does not use the caller's context, which may have ended: Release
// itself waits at most for the session timeout.
func (h *hold) giveBack() error {
	if !h.begun.CompareAndSwap(false, true) {
		<-h.done
		return h.err
	}
	h.err = h.lock.Release(context.WithoutCancel(h.parent))
	h.undo()
	close(h.done)
	return h.err
}

// lateContext is the context of a stream that acquires its lock when the context is
// already in use. It ends with its parent or by cancel. After carry it carries the
// lock, and so do contexts that were derived from it before.
type lateContext struct {
	context.Context // ends; has the parent's values
	cancel          context.CancelCauseFunc

	// carrier has the values of Context and the lock, and never ends. It does not
	// have the internal values of package context. So contexts that are derived
	// from this one always find Context, and end with it.
	carrier atomic.Pointer[context.Context]
}

func newLateContext(parent context.Context) *lateContext {
	ctx, cancel := context.WithCancelCause(parent)
	return &lateContext{Context: ctx, cancel: cancel}
}

// Value implements context.Context.
func (c *lateContext) Value(key any) any {
	if carrier := c.carrier.Load(); carrier != nil {
		if v := (*carrier).Value(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}

// carry makes the context carry a lock, and end when the lock is lost. A release does
// not end the context: replies to messages that were sent while the lock was held may
// still arrive.
func (c *lateContext) carry(lock *zklock.Lock) (undo func()) {
	// The parent is c.Context and not c: c.Value asks carrier, which would ask c again.
	inner, cancel := lock.Context(c.Context)
	carrier := context.WithoutCancel(inner)
	c.carrier.Store(&carrier)
	stop := context.AfterFunc(inner, func() {
		if cause := context.Cause(inner); errors.Is(cause, zklock.ErrLost) {
			c.cancel(cause)
		}
	})
	return func() { stop(); cancel() }
}
