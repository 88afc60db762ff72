package session

import (
	"context"
	"sync"
	"time"
)

// deadline is the context of a session's transactions. It ends when one that is sent now has
// gone unanswered for too long. Those that are sent within an eighth of that time share it:
// a context and a timer for each would cost more than all the rest of a request. So a
// request has between seven eighths of the time and all of it.
type deadline struct {
	mu      sync.Mutex
	ctx     context.Context    // guarded by mu
	release context.CancelFunc // guarded by mu; never called: ctx ends in time, or with the session
	until   time.Time          // guarded by mu; from then on requests get another one
}

// context returns the context of a request that is sent now and may take that long.
func (d *deadline) context(parent context.Context, limit time.Duration) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.ctx == nil || !now.Before(d.until) {
		d.until = now.Add(limit / 8)
		d.ctx, d.release = context.WithDeadline(parent, now.Add(limit))
	}
	return d.ctx
}
