package zklock

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"
	"weak"
)

// A handle that is dropped without a Release stays held: that nobody refers to
// it any more does not prove that the work under it has ended. It is logged and
// counted. To see it, nothing in this package must refer to the Lock itself but
// weakly, which costs more than a short lock should pay. So the Lock is referred
// to plainly at first, and is let go of, with a clean-up attached, when the
// heart finds it older than a tenth of the session timeout.

// lock returns the Lock that the caller has, or had, for a hook to be told of.
func (h *handle) lock() *Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.strong != nil {
		return h.strong
	}
	if l := h.weak.Value(); l != nil {
		return l
	}
	return &Lock{h}
}

// letGo has the garbage collector tell when the caller has dropped the Lock.
func (h *handle) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.strong == nil || h.reason() != nil {
		return
	}
	h.weak = weak.Make(h.strong)
	runtime.AddCleanup(h.strong, (*handle).forgotten, h)
	h.strong = nil
}

// forgotten is called when the Lock was collected.
func (h *handle) forgotten() {
	if h.reason() != nil {
		return
	}
	all := h.hold.all
	all.counters.forgotten.Add(1)
	told := []any{"held", time.Since(h.since), "session", h.hold.place.Desk.DS.ID()}
	if at := acquiredAt(h.hookCtx); at != nil {
		told = append(told, "acquired", at)
	} else {
		told = append(told, "hint", "WithAcquireStacks has this say where the lock was acquired")
	}
	all.cfg.Logger.Error("zklock: a lock was dropped without Release; it stays held until its session ends", told...)
}

// stackKey is where a context has the stack of an acquisition. A handle keeps
// the context of its acquisition anyway, for the Lost hook: so neither a handle
// nor an acquisition is any bigger where stacks are not wanted.
type stackKey struct{}

// maxStack bounds how many frames are remembered of an acquisition.
const maxStack = 32

// withStack adds where the calling goroutine is, from the caller's caller on.
func withStack(ctx context.Context) context.Context {
	const itself, caller = 2, 1 // runtime.Callers and withStack; Client.acquire
	pcs := make([]uintptr, maxStack)
	return context.WithValue(ctx, stackKey{}, pcs[:runtime.Callers(itself+caller, pcs)])
}

// ownFrames is what this package's functions are called, without the others' of
// the module.
const ownFrames = "github.com/zklock/go-zklock/zklock."

// acquiredAt returns the frames that withStack added, the innermost first, from
// the caller of this package on; nil if there are none.
func acquiredAt(ctx context.Context) (at []string) {
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

// Review implements session.Tenant: it lets go of handles that have been held for a while.
func (h *hold) Review() {
	before := time.Now().Add(-h.place.Desk.Timeout / 10)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.handles {
		if l.since.Before(before) {
			l.letGo()
		}
	}
}

// Since implements session.Tenant.
func (h *hold) Since() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.handles) == 0 {
		return time.Time{}
	}
	return h.handles[0].since // the first is the oldest
}
