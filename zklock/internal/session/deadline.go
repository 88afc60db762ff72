package session

import (
	"context"
	"sync"
	"time"
)

// deadline makes the contexts of a session's transactions, which bound how long a
// transaction may stay unanswered. Transactions that are sent within an eighth of that time
// share one context: a context and a timer for each would cost more than the whole rest of a
// request. So a request has between seven eighths of the time and all of it.
type deadline struct {
	mu      sync.Mutex
	ctx     context.Context    // guarded by mu
	release context.CancelFunc // guarded by mu; never called: ctx ends at its deadline, or with the session
	until   time.Time          // guarded by mu; from then on, requests get another context
}

// context returns the context of a request that is sent now and may take as long as limit.
func (d *deadline) context(parent context.Context, limit time.Duration) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.ctx == nil || !now.Before(d.until) {
		d.until = now.Add(limit / 8)
		d.ctx, d.release = context.WithDeadline(parent, now.Add(limit))
	}
	return d.ctx
}
