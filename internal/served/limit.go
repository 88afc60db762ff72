package served

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Limit is until when a request may wait for its lock, so that the answer still reaches its client. The zero
// Limit is none.
type Limit struct{ At time.Time }

// errLate is the error of a request that has got its lock when it cannot be answered in time any longer.
var errLate = fmt.Errorf("the server's WriteTimeout, or the deadline of the request, leaves no time to serve it: %w", zklock.ErrNotAcquired)

// limitKey is the context key of a Limit.
type limitKey struct{}

// LimitOf returns the limit of a request by its server's WriteTimeout, and a context with it, for locks inside of
// this one. The server counts from when it has read the request's header, and an adapter that has just got the
// request from now. ctx is the request's context. own replaces the WriteTimeout if it is not nil; with zero or less
// there is no limit.
func LimitOf(ctx context.Context, own *time.Duration) (context.Context, Limit) {
	var d time.Duration
	if own != nil {
		d = *own
	} else if s, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok {
		d = s.WriteTimeout
	}
	if d <= 0 {
		return ctx, Limit{}
	}
	if outer, ok := ctx.Value(limitKey{}).(Limit); ok {
		return ctx, outer
	}
	l := Limit{time.Now().Add(d - Room(d))}
	return context.WithValue(ctx, limitKey{}, l), l
}

// Room returns how much of d is left for the answer.
func Room(d time.Duration) time.Duration { return max(0, min(d/10, time.Second)) }

// Passed reports whether the limit has passed.
func (l Limit) Passed() bool { return !l.At.IsZero() && !time.Now().Before(l.At) }

// Within returns d, or the time until the limit if that is less.
func (l Limit) Within(d time.Duration) time.Duration {
	if l.At.IsZero() {
		return d
	}
	return min(d, time.Until(l.At))
}

// Acquirer returns a, but its wait ends at the limit. What is acquired later is given back. wait is how long the
// options of the acquisition have it wait; zero or less: it is a try.
func (l Limit) Acquirer(a zklock.Acquirer, wait time.Duration) zklock.Acquirer {
	if l.At.IsZero() || a == nil {
		return a
	}
	return &limited{a, l, wait}
}

// limited is a lock of a request with a limit.
type limited struct {
	zklock.Acquirer
	limit Limit
	wait  time.Duration
}

// Acquire implements zklock.Acquirer.
func (a *limited) Acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	acquiring := ctx
	if a.wait > 0 {
		opts = append(opts[:len(opts):len(opts)], zklock.WithWait(max(a.limit.Within(a.wait), 1)))
	} else {
		// A try waits for no other contender, but in an outage it does wait for a session.
		var cancel context.CancelFunc
		acquiring, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(time.Until(a.limit.At), cancel).Stop()
	}
	lock, err := a.Acquirer.Acquire(acquiring, opts...)
	if err != nil || !a.limit.Passed() {
		return lock, err
	}
	ended, cancel := context.WithCancel(ctx)
	cancel() // the answer does not wait until the release is confirmed
	_ = lock.Release(ended)
	return nil, errLate
}
