package zklock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// handle is what a Lock refers to. It is what the hold keeps, so that it can
// tell of a loss while the Lock itself may be collected.
type handle struct {
	hold    *hold
	token   Token
	hookCtx context.Context       // what the Acquire hook returned; see withStack
	since   time.Time             // when it was acquired
	err     atomic.Pointer[error] // why it is not held any more; set once, under mu

	mu       sync.Mutex
	done     chan struct{}                                        // guarded by mu; made when first asked for, closed once err is set
	released bool                                                 // guarded by mu; Release was called
	contexts map[*context.CancelCauseFunc]context.CancelCauseFunc // guarded by mu; to cancel when done
	strong   *Lock                                                // guarded by mu; nil once letGo has been called
	weak     weak.Pointer[Lock]                                   // guarded by mu; set by letGo
}

func (l *handle) reason() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// tellLost tells the logger and the hooks of the loss of a handle.
func (l *handle) tellLost() {
	err, ok := l.reason().(*LostError)
	if !ok {
		return
	}
	all := l.hold.all
	all.cfg.Logger.Warn("zklock: lock lost", "cause", err.Cause, "session", l.hold.place.Desk.DS.ID())
	if hook := all.hooks.lost; hook != nil {
		hook(l.hookCtx, LostEvent{Lock: l.lock(), Err: err})
	}
}

// end sets err, closes done and ends the contexts, unless that has been done
// before. A loss is counted first: who has seen it finds it among the figures.
func (l *handle) end(err error) bool {
	l.mu.Lock()
	if l.err.Load() != nil {
		l.mu.Unlock()
		return false
	}
	if err != ErrReleased {
		l.hold.all.counters.lost.Add(1)
	}
	l.err.Store(&err)
	if l.done != nil {
		close(l.done)
	}
	contexts := l.contexts
	l.contexts = nil
	l.mu.Unlock()
	for _, cancel := range contexts {
		cancel(err)
	}
	return true
}
