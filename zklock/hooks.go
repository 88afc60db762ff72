package zklock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Hooks are functions that the library calls as things happen: the tracing
// package is made of nothing else. Any field may be nil; nil hooks cost
// nothing. Hooks are called synchronously on the path they observe and possibly
// by many goroutines at once, so they must be fast and must not wait; they must
// not call back into the lock or client they are told about. A panic in a hook
// is the hook's bug and is not caught.
//
// A hook that starts something returns the function that ends it, so that the
// two cannot be mismatched. The end function may be nil. The context it returns
// is used for what happens inside; a nil context stands for the one passed in.
type Hooks struct {
	// Acquire is called when an acquisition starts; the returned function when
	// it has succeeded or failed. A request that is refused because of its name or
	// of other arguments is an acquisition that fails.
	Acquire func(ctx context.Context, e AcquireEvent) (context.Context, func(AcquireResult))

	// Wait is called, inside Acquire, when somebody ahead has to be waited for.
	Wait func(ctx context.Context, e WaitEvent) (context.Context, func(WaitResult))

	// Ahead is called, inside Wait, each time the one waited for has changed.
	Ahead func(ctx context.Context, e WaitEvent)

	// Release is called once a handle, when it is released.
	Release func(ctx context.Context, e ReleaseEvent) (context.Context, func(ReleaseResult))

	// Operation is called around every request to the ensemble.
	Operation func(ctx context.Context, e OperationEvent) (context.Context, func(error))

	// Lost is called once a handle that stops being held without a release,
	// with the context that Acquire's hook returned. It follows the end of the
	// lock's Done: every Done on the session closes before the first Lost is called.
	// A session calls its Lost and Session hooks one at a time, on a goroutine of
	// its own. Close waits until the last of them has returned.
	Lost func(ctx context.Context, e LostEvent)

	// Handover is called when a place in the ensemble's queue is passed on to
	// another holder in this process, with the context of the one who gets it.
	Handover func(ctx context.Context, e HandoverEvent)

	// Session is called when a session connects, is suspended, is lost, or is
	// replaced, and after each heartbeat. Events come in order. While the hook is
	// busy, heartbeats are merged, and when many events wait the oldest is left out.
	Session func(e SessionEvent)

	// Inject returns the traceparent that is written into the queue node, so
	// that those who wait behind it can tell for whom. "" for none.
	Inject func(ctx context.Context) string
}

// AcquireEvent says what is being acquired.
type AcquireEvent struct {
	// Name is the lock's name. A name that is refused is cut at 512 bytes, and what
	// is not UTF-8 in it is replaced.
	Name string

	// Mode is how it is to be held.
	Mode Mode

	// Try says that the caller does not wait for other holders.
	Try bool
}

// AcquireResult says how an acquisition ended.
type AcquireResult struct {
	// Lock is what was acquired; nil on failure.
	Lock *Lock

	// Waited is for how long others were waited for; 0 if nobody was.
	Waited time.Duration

	// Err is nil, or what Acquire returns.
	Err error
}

// WaitEvent says who is being waited for.
type WaitEvent struct {
	// Name is the lock's name.
	Name string

	// Mode is how it is to be held.
	Mode Mode

	// Position is how many contenders are ahead in the queue.
	Position int

	// Ahead is the contender that is waited for.
	Ahead Contender
}

// WaitResult says how a wait ended.
type WaitResult struct {
	// Err is nil if nobody is ahead any more.
	Err error
}

// ReleaseEvent says what is being released.
type ReleaseEvent struct {
	// Lock is the handle.
	Lock *Lock

	// Held is for how long it was held.
	Held time.Duration
}

// ReleaseResult says how a release ended.
type ReleaseResult struct {
	// Handed says that the queue node was passed on to another holder in this
	// process, or is still held by another handle on the same lock.
	Handed bool

	// Err is nil, or what Release returns.
	Err error
}

// LostEvent says what was lost.
type LostEvent struct {
	// Lock is the handle.
	Lock *Lock

	// Err says why.
	Err *LostError
}

// HandoverEvent says what was passed on.
type HandoverEvent struct {
	// Name is the lock's name.
	Name string

	// Mode is how the next one holds it.
	Mode Mode

	// Turn is the next one's turn, the second part of its token.
	Turn uint32

	// From is the traceparent of the request that held it.
	From string

	// To is the traceparent of the request that holds it now.
	To string
}

// OperationEvent describes one request to the ensemble.
type OperationEvent struct {
	// Kind is what for: enqueue, requeue, release, list, watch, heartbeat, sync,
	// verify, txn, parent, recover, mark, reap, or commit (of a group of several kinds).
	Kind string

	// Group is how many callers' writes travel in it; 1 for all but commits.
	Group int

	// Server is the server it is sent to, as far as known.
	Server string

	// Session is the id of the session it is sent on.
	Session int64
}

// SessionEvent tells about a session.
type SessionEvent struct {
	// ID is the session's id.
	ID int64

	// Server is the server it is connected to, as far as known.
	Server string

	// State is the session's state. A session that this process gave up, be it
	// not yet expired on the ensemble, is reported as Expired.
	State driver.State

	// Lease is how much of the proven lease is left; 0 if nothing is held or
	// queued.
	Lease time.Duration

	// Err says why the session ended, if it did.
	Err error
}

// JoinHooks makes one Hooks of several: starts, and plain notifications, are
// called in order, each start with the context the one before returned, and
// ends in reverse. The first non-empty traceparent of Inject counts.
func JoinHooks(hooks ...Hooks) Hooks {
	var j Hooks
	for _, h := range hooks {
		j.Acquire = joinStart(j.Acquire, h.Acquire)
		j.Wait = joinStart(j.Wait, h.Wait)
		j.Ahead = joinNotify(j.Ahead, h.Ahead)
		j.Release = joinStart(j.Release, h.Release)
		j.Operation = joinStart(j.Operation, h.Operation)
		j.Lost = joinNotify(j.Lost, h.Lost)
		j.Handover = joinNotify(j.Handover, h.Handover)
		j.Session = joinSession(j.Session, h.Session)
		j.Inject = joinInject(j.Inject, h.Inject)
	}
	return j
}

func joinStart[E, R any](a, b hook.Starter[E, R]) hook.Starter[E, R] {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(ctx context.Context, e E) (context.Context, func(R)) {
		ctx, endA := hook.Start(a, ctx, e)
		ctx, endB := hook.Start(b, ctx, e)
		return ctx, func(r R) { endB.Call(r); endA.Call(r) }
	}
}

func joinNotify[E any](a, b func(context.Context, E)) func(context.Context, E) {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(ctx context.Context, e E) { a(ctx, e); b(ctx, e) }
}

func joinSession(a, b func(SessionEvent)) func(SessionEvent) {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(e SessionEvent) { a(e); b(e) }
}

func joinInject(a, b func(context.Context) string) func(context.Context) string {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(ctx context.Context) string {
		if s := a(ctx); s != "" {
			return s
		}
		return b(ctx)
	}
}

// useHooks has sessions call the hooks that are about them.
func (c *config) useHooks() {
	if f := c.hooks.Operation; f != nil {
		c.Operation = func(ctx context.Context, op session.Operation) (context.Context, func(error)) {
			return f(ctx, OperationEvent(op))
		}
	}
	if f := c.hooks.Session; f != nil {
		c.Changed = func(s session.State) { f(SessionEvent(s)) }
	}
}

// observers are those of a client's hooks that turnstiles call, each nil if nobody
// listens. See Hooks.
type observers struct {
	wait     func(context.Context, WaitEvent) (context.Context, func(WaitResult))
	ahead    func(context.Context, WaitEvent)
	handover func(context.Context, HandoverEvent)
	release  func(context.Context, ReleaseEvent) (context.Context, func(ReleaseResult))
	lost     func(context.Context, LostEvent)
	inject   func(context.Context) string
}

func observersOf(h *Hooks) observers {
	return observers{wait: h.Wait, ahead: h.Ahead, handover: h.Handover, release: h.Release, lost: h.Lost, inject: h.Inject}
}
