package session

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// deadline makes the contexts that bound how long a session's transactions may stay unanswered.
// Transactions that are sent within an eighth of that time share one context, so each has at least
// seven eighths of the time: a context and a timer for each would cost more than the whole rest
// of a request.
type deadline struct {
	mu      mutex.Mutex[mutex.Inner]
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

// patient derives a context that ends, with cause, when until says. It asks until again at each instant that
// until has returned: answers may have moved the end.
func patient(ctx context.Context, cause error, until func() time.Time) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	left := time.Until(until())
	if left <= 0 {
		end(cause)
		return ctx, func() {}
	}
	var timer *time.Timer
	made := make(chan struct{})
	timer = time.AfterFunc(left, func() {
		<-made
		if ctx.Err() != nil {
			return
		}
		if left := time.Until(until()); left > 0 {
			timer.Reset(left)
		} else {
			end(cause)
		}
	})
	close(made)
	return ctx, func() {
		end(nil)
		timer.Stop() // if the function sets it again just now, it does nothing then
	}
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Sleep waits for d. It returns false if ctx ends or stop is closed before; stop may be nil.
func Sleep(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-stop:
	case <-ctx.Done():
	}
	return false
}

// Poke wakes the goroutine that receives from ch, which has a capacity of 1. It never waits:
// if a wake-up is pending already, one is enough.
func Poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
