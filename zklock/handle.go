package zklock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// handle has the state of one Lock. The hold refers to handles and not to Locks, so
// that it can report a loss, and the garbage collector can still collect a Lock that
// the program has dropped.
type handle struct {
	hold     *hold
	token    Token
	hookCtx  context.Context           // what the Acquire hook returned; see withStack
	acquired time.Time                 // when it was acquired
	ended    atomic.Pointer[LostError] // how it ended, a loss or byRelease; nil while it is held; set once, under mu

	mu       sync.Mutex
	done     chan struct{}                         // guarded by mu; made when Done is first called, closed when ended is set
	async    bool                                  // WithAsyncRelease; set before its caller has the Lock
	released bool                                  // guarded by mu; Release was called
	revoked  *revocation                           // guarded by mu; nil without WithRevocable
	contexts map[*context.CancelCauseFunc]struct{} // guarded by mu; to cancel when ended is set, or revoked.err
	strong   *Lock                                 // guarded by mu; nil after letGo
	weak     weak.Pointer[Lock]                    // guarded by mu; set by letGo
}

// byRelease is the end of a handle that was released.
var byRelease = &LostError{}

// reason returns nil while the handle is held, and then why it is not.
func (hd *handle) reason() error {
	switch ended := hd.ended.Load(); ended {
	case nil:
		return nil
	case byRelease:
		return ErrReleased
	default:
		return ended
	}
}

// reportLost calls the Lost hook if the handle was lost.
func (hd *handle) reportLost() {
	ended := hd.ended.Load()
	if hook := hd.hold.turnstiles.hooks.Lost; hook != nil && ended != nil && ended != byRelease {
		hook(hd.hookCtx, LostEvent{Lock: hd.lock(), Err: ended})
	}
}

// end sets ended, closes done and ends the contexts. It returns false if the handle had ended
// before. A loss is counted first, so that a caller that has noticed the loss finds it in Stats.
func (hd *handle) end(how *LostError) bool {
	hd.mu.Lock()
	if hd.ended.Load() != nil {
		hd.mu.Unlock()
		return false
	}
	if how != byRelease {
		hd.hold.turnstiles.counters.lost.Add(1)
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
