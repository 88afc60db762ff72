package zklock

import (
	"context"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Lock is a lock that was acquired. It is held until [Lock.Release] is called or it is lost, and
// is never held again. A Lock is safe for concurrent use.
//
// A lock is lost when its session's lease runs out before a quorum of the ensemble has renewed it,
// when the session ends, when another program deletes the queue node, or when the [Client] is
// closed. Done is closed, and the contexts of [Lock.Context] end, before the ensemble can grant the
// lock to another client. There are two exceptions. If the node was deleted, they may end later. In
// a process that was stopped, they end some milliseconds after it continues; Valid is false at once.
// [Lock.Token] protects a resource from writes that such a process had begun.
//
// A Lock that the program drops without a Release stays held until its session ends. When the
// garbage collector finds it, the client logs a warning and counts it in [Stats]. A context made
// with Lock.Context refers to the Lock, so it must be gone, too. With [WithAcquireStacks] the log
// has where it was acquired.
type Lock struct{ handle *lockHandle }

// Name returns the lock's name; for All, the names joined by commas.
func (l *Lock) Name() string { return l.handle.hold.Name() }

// Names returns the names that are held, sorted: several for All, one for all other kinds.
func (l *Lock) Names() []string {
	names := make([]string, len(l.handle.hold.Wants()))
	for i, w := range l.handle.hold.Wants() {
		names[i] = w.Name
	}
	return names
}

// Modes returns how each of Names is held, in the same order. All may hold one name for writing
// and another for reading.
func (l *Lock) Modes() []Mode {
	modes := make([]Mode, len(l.handle.hold.Wants()))
	for i, w := range l.handle.hold.Wants() {
		modes[i] = Mode(w.Kind.Mode)
	}
	if len(modes) == 1 {
		modes[0] = l.Mode() // a Downgrade changes only the hold's mode, not wants
	}
	return modes
}

// Mode returns how the lock is held; for All, Exclusive if any of its names is held exclusively.
func (l *Lock) Mode() Mode { return Mode(l.handle.hold.Mode()) }

// Candidacy reports whether the lock is meant to be held for long: whether its queue node was acquired
// with [WithCandidacy].
func (l *Lock) Candidacy() bool { return l.handle.hold.Candidacy() }

// Token returns the fencing token. An exclusive holder's token is greater than those of all holders
// of the name before it, readers included, except after a [Client.Break]. A reader's token is
// greater than those of all writers before it, and less than those of all writers after it. Readers
// that share a queue node may have the same token. The token of a Lock never changes, not even by a
// Downgrade; readers that join the lock after a Downgrade have the next Turn.
func (l *Lock) Token() Token { return l.handle.token }

// Valid reports whether the lock is held at the moment of the call. It looks at the clock
// and does not depend on timers, so it is right even in a process that was stopped and
// has just continued. It makes no request.
func (l *Lock) Valid() bool {
	return l.Err() == nil && l.handle.hold.Alive()
}

// Until returns the end of the lease that is proven so far, on the clock of [time.Now]. The
// session's heartbeats move it forward. Until returns the zero time for a lock that is not held.
func (l *Lock) Until() time.Time {
	if left := l.handle.hold.Left(); left > 0 && l.Err() == nil {
		return time.Now().Add(left)
	}
	return time.Time{}
}

// SessionTimeout returns the session timeout that the servers have granted to the lock's
// session. It may be shorter than session_timeout asks for.
func (l *Lock) SessionTimeout() time.Duration { return l.handle.hold.SessionTimeout() }

// MinLease returns how much of the lease is left at least while heartbeats are answered:
// [Lock.Until] does not come closer than that, except for the time that an answer takes. Work
// that takes longer to end cannot wait until the end of the lease is near. A lock may be
// granted with less lease than that; the first heartbeat follows at once.
func (l *Lock) MinLease() time.Duration { return l.handle.hold.MinLease() }

// Done returns a channel that is closed when the lock stops being held. [Lock.Err] returns
// the reason.
func (l *Lock) Done() <-chan struct{} {
	l.handle.mu.Lock()
	defer l.handle.mu.Unlock()
	if l.handle.done == nil {
		l.handle.done = make(chan struct{})
		if l.handle.ended.Load() != nil {
			close(l.handle.done)
		}
	}
	return l.handle.done
}

// Err returns nil while Done is open. Then it returns [ErrReleased] after a Release, or a
// *[LostError] after a loss.
func (l *Lock) Err() error { return l.handle.reason() }

// Release gives the lock back. The Lock is released as soon as Release is called. Only the first
// call does the work; later calls fail with [ErrReleased].
//
// Release returns nil if the ensemble has confirmed the release, or if no confirmation
// is needed: the queue node was passed on to a goroutine of this process, or the client keeps
// it, or another Lock still holds it. It waits for the confirmation until ctx ends, but no longer than
// a session timeout. Then the error matches [ErrReleasePending], and the release
// continues in the background. So it does if the ensemble refuses it, for example without the right DELETE: the
// client tries again, up to once in a minute. If the session ends before the confirmation, the queue
// node goes with it; the error matches ErrReleasePending, and its text has the reason. With
// [WithAsyncRelease] it does not wait for the confirmation.
//
// If the lock was lost before, the error matches [ErrLost]. If another program has
// deleted one of the queue nodes of an All, the text says whether the others are gone.
//
// If several Locks hold one queue node, because readers share it or one joined the other
// with [Reenter], the Release of the last one gives it back.
func (l *Lock) Release(ctx context.Context) (err error) {
	if l == nil || l.handle == nil {
		return &Error{Op: "release", Err: ErrReleased}
	}
	h := l.handle.hold
	defer annotate(&err, "release", h.Name())
	valid := l.Valid() // if the lease has run out, the lock is lost, even if that is not known yet
	if l.handle.released.Swap(true) {
		return ErrReleased
	}
	if !valid && l.Err() == nil {
		h.EndSession()
		<-l.Done() // another goroutine may be ending the session, and may not have reached this lock
	}
	var event ReleaseEvent
	if l.handle.client.hooks.Release != nil { // else it is not worth a clock and a mutex
		event = ReleaseEvent{Lock: l, Held: time.Since(l.handle.acquired), Revoked: l.handle.revokedAt()}
	}
	returns := false
	defer func() {
		if !returns {
			l.abandon(ctx)
		}
	}()
	ctx, end := hook.Start(l.handle.client.hooks.Release, ctx, event)
	if !l.handle.end(byRelease) {
		err = l.handle.reason()
		end.Call(ReleaseResult{Err: err})
		return err
	}
	if !l.handle.client.deadlocks.Released(ctx, l.handle, l.handle.async) {
		h.KeepBack()
	}
	handed, deleted, err := h.Release(ctx, l.handle, l.handle.async)
	if err != nil {
		l.handle.client.cfg.Place.Log().Warn("zklock: release not confirmed by the ensemble; other contenders wait for the lock until the queue node or its session is gone", "name", h.Name(), "session", session.HexID(h.SessionID()))
	}
	if deleted {
		var lost error = &LostError{Name: h.Name(), Cause: errs.ErrNodeDeleted, At: time.Now()}
		if err != nil {
			lost = fmt.Errorf("%w; %v", lost, err) // an All's: the other nodes may still exist
		}
		err = lost
	}
	end.Call(ReleaseResult{Handed: handed, Err: err})
	returns = true
	return err
}

// abandon gives the lock back, in the background, if a Release hook has panicked before Release has done so. Its
// caller may recover, and a further Release does nothing.
func (l *Lock) abandon(ctx context.Context) {
	h := l.handle.hold
	if !l.handle.end(byRelease) {
		return
	}
	if !l.handle.client.deadlocks.Released(ctx, l.handle, true) {
		h.KeepBack()
	}
	_, _, _ = h.Release(context.WithoutCancel(ctx), l.handle, true)
}
