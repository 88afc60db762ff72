package zklock

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"
	"weak"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A Lock that the program drops without a Release stays held, because the work under
// it may not have ended. The drop is logged and counted. The garbage collector can
// notice it only if this package has nothing but a weak reference to the Lock. Weak
// references cost too much for locks that are held briefly. So a handle refers to its
// Lock plainly at first. When the session's heart finds that it has been held for a
// tenth of the session timeout, letGo attaches a clean-up and makes the reference weak.

// lock returns the Lock for a hook: the caller's, or a new one if the caller's was
// collected.
func (hd *handle) lock() *Lock {
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

// letGoOfContext drops what a released handle refers to, for a hold that others still have.
func (hd *handle) letGoOfContext() {
	hd.mu.Lock()
	defer hd.mu.Unlock()
	hd.hookCtx, hd.strong = nil, nil
}

// letGo makes the reference to the Lock weak, and has the garbage collector call
// forgotten when the caller has dropped the Lock.
func (hd *handle) letGo() {
	hd.mu.Lock()
	defer hd.mu.Unlock()
	if hd.strong == nil || hd.reason() != nil {
		return
	}
	hd.weak = weak.Make(hd.strong)
	runtime.AddCleanup(hd.strong, (*handle).forgotten, hd)
	hd.strong = nil
}

// forgotten logs and counts a Lock that was collected while it was held.
func (hd *handle) forgotten() {
	if hd.reason() != nil {
		return
	}
	ts := hd.hold.turnstiles
	defer ts.counters.forgotten.Add(1) // last: a program that sees the count finds the line in the log
	attrs := []any{"name", hd.hold.name, "held", time.Since(hd.acquired), "session", session.HexID(hd.hold.place.Desk.DS.ID())}
	if at := acquireStack(hd.hookCtx); at != nil {
		attrs = append(attrs, "acquired", at)
	} else {
		attrs = append(attrs, "hint", "open the client with WithAcquireStacks to log where the lock was acquired")
	}
	ts.cfg.Logger.Warn("zklock: a lock was dropped without Release; it stays held until its session ends", attrs...)
}

// stackKey is the context key of an acquisition's stack. A handle keeps the context of
// its acquisition anyway, for the Lost hook. So the stack needs no
// space in handles without WithAcquireStacks.
type stackKey struct{}

// maxStack is the most frames that are kept of an acquisition's stack.
const maxStack = 32

// withStack adds the calling goroutine's stack to ctx, from the caller's caller on.
func withStack(ctx context.Context) context.Context {
	const itself, caller = 2, 1 // frames to skip: runtime.Callers and withStack; Client.acquire
	pcs := make([]uintptr, maxStack)
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

// Review implements session.Tenant: it calls letGo for handles that have been held for a
// tenth of the session timeout.
func (h *hold) Review() {
	before := time.Now().Add(-h.place.Desk.Timeout / 10)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hd := range h.handles {
		if hd.acquired.Before(before) {
			hd.letGo()
		}
	}
}

// About implements session.Tenant.
func (h *hold) About() (name string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.handles) == 0 {
		return h.name, time.Time{}
	}
	return h.name, h.handles[0].acquired // the first handle is the oldest
}
