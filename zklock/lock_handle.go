package zklock

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"weak"

	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// lockHandle has the state of one Lock. The hold refers to handles and not to Locks, so
// that it can report a loss, and the garbage collector can still collect a Lock that
// the program has dropped.
type lockHandle struct {
	hold     *local.Hold
	client   *clientCore
	token    Token
	hookCtx  context.Context           // what the Acquire hook returned; see withStack
	acquired time.Time                 // when it was acquired
	ended    atomic.Pointer[LostError] // how it ended, a loss or byRelease; nil while it is held; set once, under mu
	released atomic.Bool               // Release was called

	async   bool          // WithAsyncRelease; set before its caller has the Lock
	maxHold time.Duration // WithMaxHold, 0 without; set as async

	mu       mutex.Mutex[mutex.Inner]
	done     chan struct{}                         // guarded by mu; made when Done is first called, closed when ended is set
	revoked  *revocation                           // guarded by mu; nil without WithRevocable
	contexts map[*context.CancelCauseFunc]struct{} // guarded by mu; to cancel when ended is set, or revoked.err
	strong   *Lock                                 // guarded by mu; nil after Age
	weak     weak.Pointer[Lock]                    // guarded by mu; set by Age
}

var _ local.Handle = (*lockHandle)(nil)

// init sets up a handle of a hold, and returns its Lock.
func (hd *lockHandle) init(c *clientCore, hookCtx context.Context, h *local.Hold) *Lock {
	hd.hold, hd.client, hd.hookCtx, hd.acquired = h, c, hookCtx, time.Now()
	hd.strong = &Lock{hd}
	return hd.strong
}

// Begin implements local.Handle.
func (hd *lockHandle) Begin(t local.Token) { hd.token = Token(t) }

// Acquired implements local.Handle.
func (hd *lockHandle) Acquired() time.Time { return hd.acquired }

// Held implements local.Handle.
func (hd *lockHandle) Held() bool { return hd.ended.Load() == nil }

// byRelease is the end of a handle that was released.
var byRelease = &LostError{}

// reason returns nil while the handle is held, and then why it is not.
func (hd *lockHandle) reason() error {
	switch ended := hd.ended.Load(); ended {
	case nil:
		return nil
	case byRelease:
		return ErrReleased
	default:
		return ended
	}
}

// ReportLost implements local.Handle: it calls the Lost hook if the handle was lost.
func (hd *lockHandle) ReportLost() {
	ended := hd.ended.Load()
	if hook := hd.client.hooks.Lost; hook != nil && ended != nil && ended != byRelease {
		hook(hd.hookCtx, LostEvent{Lock: hd.lock(), Err: ended})
	}
}

// Release implements local.Handle.
func (hd *lockHandle) Release() bool { return hd.end(byRelease) }

// Lose implements local.Handle.
func (hd *lockHandle) Lose(l *local.Loss) bool { return hd.end((*LostError)(l)) }

// end sets ended, closes done and ends the contexts. It returns false if the handle had ended
// before. A loss is counted first, so that a caller that has noticed the loss finds it in Stats.
func (hd *lockHandle) end(how *LostError) bool {
	hd.mu.Lock()
	if hd.ended.Load() != nil {
		hd.mu.Unlock()
		return false
	}
	if how != byRelease {
		hd.client.counters.lost.Add(1)
	}
	hd.ended.Store(how)
	if hd.done != nil {
		close(hd.done)
	}
	contexts := hd.contexts
	hd.contexts = nil
	hd.mu.Unlock()
	for cancel := range contexts {
		(*cancel)(hd.reason())
	}
	return true
}

// A Lock that the program drops without a Release stays held, because the work under
// it may not have ended. The drop is logged and counted. The garbage collector can
// notice it only if this package has nothing but a weak reference to the Lock. Weak
// references cost too much for locks that are held briefly. So a handle refers to its
// Lock plainly at first. When the session's heart finds that it has been held for a
// tenth of the session timeout, Age attaches a clean-up and makes the reference weak.

// lock returns the Lock for a hook: the caller's, or a new one if the caller's was
// collected.
func (hd *lockHandle) lock() *Lock {
	hd.mu.Lock()
	defer hd.mu.Unlock()
	if hd.strong != nil {
		return hd.strong
	}
	if l := hd.weak.Value(); l != nil {
		return l
	}
	return &Lock{hd}
}

// Parted implements local.Handle. A successor's first handle lives as long as the hold, so a handle
// drops what it refers to when others still have the hold.
func (hd *lockHandle) Parted() {
	hd.mu.Lock()
	defer hd.mu.Unlock()
	hd.hookCtx, hd.strong = nil, nil
}

// Age implements local.Handle: it makes the reference to the Lock weak, and has the garbage collector call
// forgotten when the caller has dropped the Lock.
func (hd *lockHandle) Age() {
	hd.mu.Lock()
	defer hd.mu.Unlock()
	if hd.strong == nil || hd.reason() != nil {
		return
	}
	hd.weak = weak.Make(hd.strong)
	runtime.AddCleanup(hd.strong, (*lockHandle).forgotten, hd)
	hd.strong = nil
}

// forgotten logs and counts a Lock that was collected while it was held.
func (hd *lockHandle) forgotten() {
	if hd.reason() != nil {
		return
	}
	c := hd.client
	defer c.counters.forgotten.Add(1) // last: a program that sees the count, and closes the client, finds the line in the log
	attrs := []any{"name", hd.hold.Name(), "held", time.Since(hd.acquired), "session", session.HexID(hd.hold.SessionID())}
	if at := acquireStack(hd.hookCtx); at != nil {
		attrs = append(attrs, "acquired", at)
	} else {
		attrs = append(attrs, "hint", "open the client with WithAcquireStacks to log where the lock was acquired")
	}
	c.cfg.Place.Log().Warn("zklock: a lock was dropped without Release; it stays held until its session ends", attrs...)
}

// stackKey is the context key of an acquisition's stack. A handle keeps the context of
// its acquisition anyway, for the Lost hook. So the stack needs no
// space in handles without WithAcquireStacks.
type stackKey struct{}

// withStack adds the calling goroutine's stack to ctx, from the caller's caller on.
func withStack(ctx context.Context) context.Context {
	const itself, caller = 2, 1 // frames to skip: runtime.Callers and withStack; Client.acquire
	pcs := make([]uintptr, 32)  // the outer frames of a deeper stack are left out
	return context.WithValue(ctx, stackKey{}, pcs[:runtime.Callers(itself+caller, pcs)])
}

// ownFrames is the prefix of the names of this package's functions. Those of the
// module's other packages do not have it.
const ownFrames = "github.com/zklock/go-zklock/zklock."

// acquireStack returns the frames that withStack added, innermost first, beginning with
// the caller of this package; nil if ctx has none.
func acquireStack(ctx context.Context) (at []string) {
	pcs, _ := ctx.Value(stackKey{}).([]uintptr)
	if len(pcs) == 0 {
		return nil
	}
	frames := runtime.CallersFrames(pcs)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if len(at) > 0 || !strings.HasPrefix(f.Function, ownFrames) {
			at = append(at, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
	}
	return at
}
