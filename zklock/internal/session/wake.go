package session

import (
	"context"
	"time"
)

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
