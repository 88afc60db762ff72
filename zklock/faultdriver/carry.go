package faultdriver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// futile reports whether a request made now could not even be sent. No fault
// can strike it, so it is not shown to the injector.
func (s *session) futile(ctx context.Context) bool {
	state, _ := s.State()
	return ctx.Err() != nil || state.Final()
}

// carry carries one operation out as far as its fault lets it, and returns
// what its caller gets to know. over is closed when the session ends; nil if
// there is none. lost, if not nil, is given a result that nobody will see.
//
// Late faults are the session's business, see session.later: here they have
// become none.
func carry[R any](ctx context.Context, op Op, f Fault, over <-chan struct{}, call func(context.Context) (R, error), lost func(R)) (R, error) {
	var zero R
	injected := func(err error) (R, error) { return zero, &Error{Op: op, Fault: f, Err: err} }

	// Before: the operation is not applied, or not yet.
	switch f.action {
	case fail:
		return injected(f.err)
	case notSent:
		return injected(driver.ErrNotSent)
	case drop:
		return injected(driver.ErrConnLoss)
	case hang:
		return injected(wait(ctx, forever, over).lost())
	case delay:
		// Over is not looked at: if the session ends, the call says so.
		if ended := wait(ctx, f.wait, nil); ended.ctx != nil {
			return injected(fmt.Errorf("%w: %w", driver.ErrNotSent, ended.ctx))
		}
	}

	result, err := call(ctx)

	// After: the operation has been applied, unless the driver knows that it
	// was not sent; that is not a reply that could be lost.
	if unsent(err) {
		return result, err
	}
	var unknown error
	switch f.action {
	case loseReply:
		unknown = driver.ErrConnLoss
	case hangReply:
		unknown = wait(ctx, forever, over).lost()
	case delayReply:
		if ended := wait(ctx, f.wait, over); !ended.elapsed {
			unknown = ended.lost()
		}
	}
	if unknown == nil {
		return result, err
	}
	if err == nil && lost != nil {
		lost(result)
	}
	return injected(unknown)
}

// unsent reports whether err says that no request left the process.
func unsent(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrSessionExpired) || errors.Is(err, driver.ErrClosed)
}

// ending is how a wait ended.
type ending struct {
	// elapsed is set if the time was over.
	elapsed bool

	// ctx is the context's error, if that ended it.
	ctx error
}

// lost is the error of a request that was sent when the wait for its reply
// ended before it came.
func (e ending) lost() error {
	if e.ctx != nil {
		return fmt.Errorf("%w: %w", driver.ErrConnLoss, e.ctx)
	}
	return driver.ErrConnLoss
}

// forever as a time to wait has no end.
const forever time.Duration = -1

// wait waits for d, but no longer than ctx and the session last.
func wait(ctx context.Context, d time.Duration, over <-chan struct{}) ending {
	var elapsed <-chan time.Time
	if d != forever {
		timer := time.NewTimer(d)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-elapsed:
		return ending{elapsed: true}
	case <-ctx.Done():
		return ending{ctx: ctx.Err()}
	case <-over:
		return ending{}
	}
}
