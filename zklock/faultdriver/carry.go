package faultdriver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// futile reports whether a request could not even be sent now. No fault can strike such a
// request, so the injector is not asked about it.
func (s *session) futile(ctx context.Context) bool {
	state, _ := s.State()
	return ctx.Err() != nil || state.Final()
}

// carry executes one operation as far as its fault allows, and returns the result for the
// caller. over is closed when the session ends; it is nil for a Connect. lost, if
// not nil, gets a result that the caller does not get.
//
// The faults Late and LateAfter do not come here; see session.later.
func carry[R any](ctx context.Context, op Op, f Fault, over <-chan struct{}, call func(context.Context) (R, error), lost func(R)) (R, error) {
	var zero R
	injected := func(err error) (R, error) { return zero, &struckError{Op: op, Fault: f, Err: err} }

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
		// This does not wait on over: if the session has ended, the call below fails.
		if ended := wait(ctx, f.wait, nil); ended.ctx != nil {
			return injected(fmt.Errorf("%w: %w", driver.ErrNotSent, ended.ctx))
		}
	}

	result, err := call(ctx)

	// After: the operation has been applied. If the driver knows that it was not sent, no reply
	// can be lost.
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

// unsent reports whether err means that no request left the process.
func unsent(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrSessionExpired) || errors.Is(err, driver.ErrClosed)
}

// ending is how a wait ended.
type ending struct {
	// elapsed is true if the whole time has passed.
	elapsed bool

	// ctx is the context's error if the context has ended the wait.
	ctx error
}

// lost returns the error of a request that was sent, if the wait for its reply ended before
// the reply came.
func (e ending) lost() error {
	if e.ctx != nil {
		return fmt.Errorf("%w: %w", driver.ErrConnLoss, e.ctx)
	}
	return driver.ErrConnLoss
}

// forever, given to wait, means that the time never passes.
const forever time.Duration = -1

// wait waits for d, but not longer than until ctx ends or over is closed.
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
