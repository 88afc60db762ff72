package zklock

import (
	"cmp"
	"context"
	"iter"
	"slices"
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
// also ends when the lock is revoked, with a cause that matches [ErrRevoked]; the lock is still
// held then. Call the CancelFunc after the last use of the context, to free its memory; it does
// not release the lock.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
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
