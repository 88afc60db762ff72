package zklock

import (
	"context"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// Lock is a lock that was acquired. It stops being held when Release is called
// or when it is lost, whichever is first, and never becomes held again. It is
// safe for concurrent use.
//
// A lock is lost when its session's lease runs out before a quorum of the
// ensemble has renewed it, when the session ends, when somebody deletes its
// queue node, or when the Client is closed. Done is closed, and contexts made
// with Context end, before the ensemble can let anybody else in, as long as
// this process gets to run; a process that was stopped finds Valid false when
// it goes on. What such a process had begun to do is what Token is for.
//
// A Lock that is dropped without a Release stays held until its session ends.
// It is logged as an error and counted in Stats when the garbage collector finds
// it, unless a context made with Context keeps it. WithAcquireStacks adds where
// it was acquired.
type Lock struct{ *handle }

// Name returns the lock's name.
func (l *Lock) Name() string { return l.hold.name }

// Names returns the names of what is held, sorted; one for all kinds but All.
func (l *Lock) Names() []string {
	names := make([]string, len(l.hold.wants))
	for i, w := range l.hold.wants {
		names[i] = w.Name
	}
	return names
}

// Modes says how each of Names is held, in the same order: All may hold one name
// for writing and another for reading.
func (l *Lock) Modes() []Mode {
	modes := make([]Mode, len(l.hold.wants))
	for i, w := range l.hold.wants {
		modes[i] = Mode(w.Kind.Mode)
	}
	if len(modes) == 1 {
		modes[0] = l.Mode() // the one kind that a Downgrade changes
	}
	return modes
}

// Mode says how the lock is held: for All, Exclusive if any of its names is.
func (l *Lock) Mode() Mode { return Mode(l.hold.currentMode()) }

// Token returns the fencing token. Every exclusive holder of a name has a
// greater one than all who held it before, readers included. A reader's is greater
// than that of every writer before and less than that of every writer after;
// readers that share a place in the queue may have the same one. It stays what it
// was when the Lock was acquired, through a Downgrade too: readers that come after
// that have the next Turn.
func (l *Lock) Token() Token { return l.token }

// Valid reports whether the lock is held at the moment of the call. It is
// computed from the clock, not from a timer, so it is right even in a process
// that was stopped for a while and has just gone on.
func (l *Lock) Valid() bool {
	return l.Err() == nil && l.hold.place.Desk.Alive()
}

// Until returns the end of the lease as proven so far, on the clock of
// time.Now. It moves on while the session lives. For a lock that is not held it
// is the zero time.
func (l *Lock) Until() time.Time {
	if l.Err() != nil {
		return time.Time{}
	}
	left, _ := l.hold.place.Desk.Left()
	if left <= 0 {
		return time.Time{}
	}
	return time.Now().Add(left)
}

// Done returns a channel that is closed when the lock stops being held, for
// whatever reason. Err says which.
func (l *Lock) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.err.Load() != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err returns nil while Done is open; then ErrReleased after a Release, or a
// *LostError, which matches ErrLost.
func (l *Lock) Err() error { return l.handle.reason() }

// Context returns a context derived from parent that carries the lock (see
// FromContext) and ends when the lock stops being held, with Err as its cause.
// Calling cancel when done with it releases what it holds, not the lock.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(withLock(parent, l))
	key := &cancel
	l.mu.Lock()
	if err := l.reason(); err != nil {
		l.mu.Unlock()
		cancel(err)
		return ctx, func() {}
	}
	if l.contexts == nil {
		l.contexts = make(map[*context.CancelCauseFunc]context.CancelCauseFunc)
	}
	l.contexts[key] = cancel
	l.mu.Unlock()
	return ctx, func() {
		l.mu.Lock()
		delete(l.contexts, key)
		l.mu.Unlock()
		cancel(context.Canceled)
	}
}

// Verify asks the ensemble whether the lock's queue node is still there; a
// quorum has to answer. It fails with a *LostError if it is not, and the lock is
// lost then, and with ErrReleased after a Release. Any other error means that
// the question could not be answered, and leaves the lock as it was.
func (l *Lock) Verify(ctx context.Context) error {
	if err := l.verify(ctx); err != nil {
		return &Error{Op: "verify", Name: l.hold.name, Err: err}
	}
	return nil
}

func (l *Lock) verify(ctx context.Context) error {
	_, err := l.transact(ctx, "verify", nil, true)
	if err == nil && l.Err() != nil {
		return l.endedError()
	}
	if err == nil && !l.hold.place.Desk.Alive() {
		return errs.LeaseUnproven(l.hold.all.cfg.ConnectTimeout)
	}
	return err
}

// Release gives the lock back. The handle is of no more use from the first
// instant of the first call, which does the work; later calls return
// ErrReleased. It waits for the ensemble's confirmation until ctx ends, but no
// longer than a session timeout, and then returns ErrReleasePending while the
// release goes on in the background. If the session ends first, the error matches
// ErrReleasePending and what ended the session: the queue node goes with it. nil
// means that the ensemble has confirmed the release, or that the lock needed none:
// it was passed on to a goroutine of this process, or another handle still has it.
// If the lock was lost before, Release returns the *LostError. If another program
// has deleted one queue node of several, the error can match ErrLost and
// ErrReleasePending at once.
//
// A handle that joined a lock with Reenter, or was joined, gives the lock back
// only if it is the last one.
func (l *Lock) Release(ctx context.Context) error {
	if l == nil || l.handle == nil {
		return &Error{Op: "release", Err: ErrReleased}
	}
	if err := l.release(ctx); err != nil {
		return &Error{Op: "release", Name: l.hold.name, Err: err}
	}
	return nil
}

func (l *Lock) release(ctx context.Context) (err error) {
	valid := l.Valid() // if the lease has run out, that is a loss, whoever announces it
	l.mu.Lock()
	if l.released {
		l.mu.Unlock()
		return ErrReleased
	}
	l.released = true
	l.mu.Unlock()
	h := l.hold
	if !valid && l.Err() == nil {
		h.place.Desk.End(driver.Expired, errs.ErrLeaseOver)
		<-l.Done() // another goroutine may be ending it, and this lock not be among the first
	}
	held := time.Since(l.since)
	ctx, end := hook.Start(h.all.hooks.release, ctx, ReleaseEvent{Lock: l, Held: held})
	if !l.end(ErrReleased) {
		err = l.reason()
		end.Call(ReleaseResult{Err: err})
		return err
	}
	handed, deleted := false, false
	switch last, lost := h.part(l.handle); {
	case lost:
		deleted, err = h.overtaken()
	case !last:
		handed = true
	default:
		handed, deleted, err = h.giveBack(ctx)
	}
	if err != nil {
		h.all.cfg.Logger.Warn("zklock: the ensemble has not confirmed a release; others wait for the lock until the queue node is gone or its session has ended", "session", h.place.Desk.DS.ID())
	}
	if deleted {
		var lost error = &LostError{Name: h.name, Cause: errs.ErrNodeDeleted, At: time.Now()}
		if err != nil {
			lost = fmt.Errorf("%w; %w", lost, err) // of All: the other nodes may be there still
		}
		err = lost
	}
	end.Call(ReleaseResult{Handed: handed, Err: err})
	return err
}
