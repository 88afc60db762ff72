package middleware

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// outageMemory is how long WithFailOpen goes by an outage before one request asks
// the ensemble again.
const outageMemory = time.Second

// outage is what WithFailOpen knows of the ensemble: without it every request of
// an outage would find out for itself, and wait for that as long as
// connect_timeout says.
type outage struct {
	mu     sync.Mutex
	on     bool      // guarded by mu
	until  time.Time // guarded by mu; when a request is to ask again
	asking *call     // guarded by mu; the request that does, if one does
}

// known reports whether a request can be served without having asked. asks says
// that the request is the one to ask: it has to call asked.
func (o *outage) known(c *call) (known, asks bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on {
		return false, false
	}
	if o.asking != nil || time.Now().Before(o.until) {
		return true, false
	}
	o.asking = c
	return false, true
}

// begin is called when no ensemble could be reached.
func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on, o.until = true, time.Now().Add(outageMemory)
}

// end is called when an ensemble was reached.
func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on, o.asking = false, nil
}

// asked is called when a request that was to ask has done so, or given up.
func (o *outage) asked(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asking == c {
		o.asking = nil
	}
}

// notice goes by the error of a request that did not get its lock, and whose own
// context has ended or not.
func (o *outage) notice(c *call, err error, ended bool) {
	defer o.asked(c)
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(zklock.ErrUnavailable) && !ended:
		o.begin()
	case is(zklock.ErrUnavailable), is(zklock.ErrInvalidName), is(zklock.ErrDeadlock), is(zklock.ErrTooManyWaiters):
		// That says nothing about the ensemble.
	default:
		o.end()
	}
}

// asking is the Acquirer of the request that asks whether the outage is over. It
// tries first: an ensemble answers that at once, and the others need not be
// served without their locks while this one waits for another holder.
type asking struct {
	zklock.Acquirer
	*outage
	wait time.Duration
}

// Acquire implements zklock.Acquirer.
func (a asking) Acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	limited, cancel := ctx, func() {}
	if a.wait > 0 {
		limited, cancel = context.WithTimeout(ctx, a.wait)
	}
	lock, err := a.TryAcquire(limited, opts...)
	cancel()
	if a.wait <= 0 || !errors.Is(err, zklock.ErrNotAcquired) {
		return lock, err
	}
	a.end()
	return a.Acquirer.Acquire(ctx, opts...)
}
