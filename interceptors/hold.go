package interceptors

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// hold is a lock that is held from one call of a method to another, where
// zklock.Do cannot be around all of them. Like Do it gives back once.
type hold struct {
	lock   *zklock.Lock
	undo   func()        // ends what serves the hold's context
	begun  atomic.Bool   // giveBack was called
	done   chan struct{} // closed once err is set
	err    error         // what the release returned
	parent context.Context
}

// take acquires a and makes ctx carry it. ctx ends when the lock is lost, or
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

// giveBack releases the lock, if that has not been done, and returns what came
// of it. Release bounds itself by the session timeout; the caller's context may
// have ended.
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

// lateContext is the context of a stream that gets its lock when the context is
// in use already. It ends with its parent and through cancel, and carries the
// lock from carry on, as do contexts made of it before.
type lateContext struct {
	context.Context // ends; has the parent's values
	cancel          context.CancelCauseFunc

	// carrier has the values of Context and the lock, and never ends: asked for
	// what the context package keeps among the values, it knows nothing, so that
	// contexts made of this one always find Context to end with.
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

// carry makes the context carry a lock, and end when it is lost. A release does
// not end it: what was sent during the hold may still be on its way back.
func (c *lateContext) carry(lock *zklock.Lock) (undo func()) {
	// A context of c itself would ask c for the values that c asks it for.
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
