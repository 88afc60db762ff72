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
	hookCtx  context.Context       // what the Acquire hook returned; see withStack
	acquired time.Time             // when it was acquired
	err      atomic.Pointer[error] // why it is not held any more, nil while it is; set once, under mu

	mu       sync.Mutex
	done     chan struct{}                                        // guarded by mu; made when Done is first called, closed when err is set
	async    bool                                                 // WithAsyncRelease; set before its caller has the Lock
	released bool                                                 // guarded by mu; Release was called
	revoked  *revocation                                          // guarded by mu; nil without WithRevocable
	contexts map[*context.CancelCauseFunc]context.CancelCauseFunc // guarded by mu; to cancel when err is set, or revoked.err
	strong   *Lock                                                // guarded by mu; nil after letGo
	weak     weak.Pointer[Lock]                                   // guarded by mu; set by letGo
}

// reason returns nil while the handle is held, and then why it is not.
func (hd *handle) reason() error {
	if err := hd.err.Load(); err != nil {
		return *err
	}
	return nil
}

// reportLost calls the Lost hook for the loss of a handle.
func (hd *handle) reportLost() {
	err, ok := hd.reason().(*LostError)
	if !ok {
		return
	}
	ts := hd.hold.turnstiles
	if hook := ts.hooks.lost; hook != nil {
		hook(hd.hookCtx, LostEvent{Lock: hd.lock(), Err: err})
	}
}

// releasedReason is the reason of all handles that were released.
var releasedReason error = ErrReleased

// shared returns a pointer to err, without an allocation for the reason of most handles.
func shared(err error) *error {
	if err == ErrReleased {
		return &releasedReason
	}
	other := err // err itself would be allocated at each call
	return &other
}

// end sets err, closes done and ends the contexts. It returns false if the handle had
// ended before. A loss is counted first, so that a caller that has noticed the loss
// finds it in Stats.
func (hd *handle) end(err error) bool {
	hd.mu.Lock()
	if hd.err.Load() != nil {
		hd.mu.Unlock()
		return false
	}
	if err != ErrReleased {
		hd.hold.turnstiles.counters.lost.Add(1)
	}
	hd.err.Store(shared(err))
	if hd.done != nil {
		close(hd.done)
	}
	contexts := hd.contexts
	hd.contexts = nil
	hd.mu.Unlock()
	for _, cancel := range contexts {
		cancel(err)
	}
	return true
}
