package zklock

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// carriedKey is the context key of the innermost lock that a context carries.
type carriedKey struct{}

// carriedLock is one lock that a context carries, or the locks of a caller. A linked list of them keeps
// the locks of the contexts that the context is derived from.
type carriedLock struct {
	lock    *Lock        // nil: it has callers
	callers []CallerLock // see WithCallerLocks
	outer   *carriedLock
}

func withLock(ctx context.Context, l *Lock) context.Context {
	outer, _ := ctx.Value(carriedKey{}).(*carriedLock)
	return context.WithValue(ctx, carriedKey{}, &carriedLock{lock: l, outer: outer})
}

// FromContext returns the innermost lock that ctx carries and that is still held. A
// context carries a lock if it was made by [Lock.Context], [Do] or an adapter, or is
// derived from such a context.
func FromContext(ctx context.Context) (*Lock, bool) {
	for l := range carriedBy(ctx) {
		if l.Err() == nil {
			return l, true
		}
	}
	return nil, false
}

// HeldIn returns all locks that ctx carries and that are still held, the innermost first.
func HeldIn(ctx context.Context) []*Lock {
	return slices.DeleteFunc(slices.Collect(carriedBy(ctx)), func(l *Lock) bool { return l.Err() != nil })
}

// carriedBy returns the locks that a context carries, the innermost first.
func carriedBy(ctx context.Context) iter.Seq[*Lock] {
	return func(yield func(*Lock) bool) {
		for c, _ := ctx.Value(carriedKey{}).(*carriedLock); c != nil; c = c.outer {
			if c.lock != nil && !yield(c.lock) {
				return
			}
		}
	}
}

// Detach returns a context that is derived from ctx and carries no locks. Use it for
// goroutines that are not part of the work under a lock and acquire locks for
// themselves: they must neither join that lock nor fail with [ErrDeadlock] because of
// it. The context still ends with ctx, and so when the lock is released. A goroutine
// that goes on after that needs Detach(context.WithoutCancel(ctx)).
func Detach(ctx context.Context) context.Context {
	return context.WithValue(ctx, carriedKey{}, (*carriedLock)(nil))
}

// Context returns a context that is derived from parent, carries the lock (see [FromContext]) and
// ends when the lock stops being held, with the lock's Err as its cause. With [WithRevocable] it
// also ends when the lock is revoked, with a cause that matches [ErrRevoked], and with [WithMaxHold] when its
// time is over; the lock is still held then. Call the CancelFunc after the last use of the context, to free its memory; it does
// not release the lock.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if l.handle.maxHold <= 0 {
		return l.context(parent)
	}
	bounded, stop := context.WithDeadlineCause(parent, l.handle.acquired.Add(l.handle.maxHold), ErrMaxHold)
	ctx, cancel := l.context(bounded)
	silent := context.AfterFunc(ctx, func() {
		if context.Cause(ctx) == ErrMaxHold {
			l.handle.client.cfg.Place.Log().Warn("zklock: work under a lock takes longer than WithMaxHold allows; its context has ended, and the lock is held until the release",
				"name", l.Name(), "after", l.handle.maxHold)
		}
	})
	return ctx, func() {
		silent()
		cancel()
		stop()
	}
}

// context is Context without WithMaxHold.
func (l *Lock) context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(withLock(parent, l))
	l.handle.mu.Lock()
	if err := cmp.Or(l.handle.reason(), l.handle.revoked.reason()); err != nil {
		l.handle.mu.Unlock()
		cancel(err)
		return ctx, func() {}
	}
	if l.handle.contexts == nil {
		l.handle.contexts = make(map[*context.CancelCauseFunc]struct{})
	}
	l.handle.contexts[&cancel] = struct{}{}
	l.handle.mu.Unlock()
	return ctx, func() {
		l.handle.mu.Lock()
		delete(l.handle.contexts, &cancel)
		l.handle.mu.Unlock()
		cancel(context.Canceled)
	}
}

// carriesLocks reports whether a context carries locks, its own or those of callers.
func carriesLocks(ctx context.Context) bool {
	c, _ := ctx.Value(carriedKey{}).(*carriedLock)
	return c != nil
}

// CallerLock is a lock that a caller of this process holds while it waits for the answer to its request.
type CallerLock struct {
	Name  string // the lock's name
	Mode  Mode   // how the caller holds it; one that is left out or unknown counts as Exclusive
	Token Token  // the token with which the caller holds it
}

// ContextWithCallerLocks returns a context that is derived from ctx and carries locks that a caller in
// another process holds until it gets the answer to its request, as a [fence.Sequencer] of the request
// says. The adapters' option WithCallerLocks uses it for callers that they trust.
//
// An acquisition that such a lock excludes fails at once with [ErrDeadlock]. Other waits of the context are
// found in circles of waits, also that of a reader behind a writer which waits for a caller that reads: see
// [DeadlockError]. Reenter does not join a caller's lock.
//
// The locks have to be of the root and the ensemble of the client that acquires with the context, and
// they have to be held until the work of the context is done: else an acquisition may fail that had only
// to wait.
func ContextWithCallerLocks(ctx context.Context, locks ...CallerLock) context.Context {
	if len(locks) == 0 {
		return ctx
	}
	unknown := func(l CallerLock) bool { return !queue.Mode(l.Mode).Known() }
	if slices.ContainsFunc(locks, unknown) {
		locks = slices.Clone(locks) // the caller's stay as they are
		for i := range locks {
			if unknown(locks[i]) {
				locks[i].Mode = Exclusive
			}
		}
	}
	outer, _ := ctx.Value(carriedKey{}).(*carriedLock)
	return context.WithValue(ctx, carriedKey{}, &carriedLock{callers: locks, outer: outer})
}

// callersOf returns the locks of callers that a context carries.
func callersOf(ctx context.Context) func(yield func(CallerLock) bool) {
	return func(yield func(CallerLock) bool) {
		for c, _ := ctx.Value(carriedKey{}).(*carriedLock); c != nil; c = c.outer {
			for _, l := range c.callers {
				if !yield(l) {
					return
				}
			}
		}
	}
}
