package session

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// PatientTry derives the context of a try for a path that has had no usable session since that time.
// The context ends with cause errs.ErrTryOver, as soon as TryTimeout has passed without an answer, or
// without a connection. That one may have been lost before the try began. The pause after a loss does
// not count, since nothing is tried in it. In all the try has connect_timeout at most, so tries do not
// pile up behind those that slow answers leave without a lease.
func (p *Pool) PatientTry(ctx context.Context, path string, since time.Time) (context.Context, context.CancelFunc) {
	return patientTry(ctx, func() time.Time { return p.tryUntil(path, since) })
}

// PatientTry derives the context of a try that waits for answers of the session, from now on. The try
// began at since. The context ends with cause errs.ErrTryOver, as soon as TryTimeout has passed without
// an answer, or connect_timeout since the try began: slow answers may never prove enough of a lease.
func (s *Session) PatientTry(ctx context.Context, since time.Time) (context.Context, context.CancelFunc) {
	now, most := time.Now(), since.Add(s.settings.ConnectTimeout)
	return patientTry(ctx, func() time.Time {
		return earlier(s.heardSince(now).Add(s.settings.TryTimeout()), most)
	})
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// patientTry derives a context that ends when until says. It asks until again at each instant that
// until has returned: answers may have moved the end.
func patientTry(ctx context.Context, until func() time.Time) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	left := time.Until(until())
	if left <= 0 {
		end(errs.ErrTryOver)
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
			end(errs.ErrTryOver)
		}
	})
	close(made)
	return ctx, func() {
		end(nil)
		timer.Stop() // if the function sets it again just now, it does nothing then
	}
}

// tryUntil returns until when a try goes on: see Pool.PatientTry.
func (p *Pool) tryUntil(path string, since time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	sl, most := &p.slots[p.slot(path)], since.Add(p.Settings.ConnectTimeout)
	if sl.session != nil {
		since = sl.session.heardSince(since)
	}
	if cut := sl.cutSince(); !cut.IsZero() {
		since = cut.Add(sl.pause)
	}
	if o := sl.opening; o != nil && o.made.After(since) {
		since = o.made // which is an answer
	}
	return earlier(since.Add(p.Settings.TryTimeout()), most)
}

// heardSince returns when the session last had an answer, also one to a read, or since if that is
// later, or if the session has no connection.
func (s *Session) heardSince(since time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := lease.Now()
	answered := time.Now().Add(-min(s.quietLocked(now), now.Sub(s.replied)))
	if s.cut.IsZero() && answered.After(since) {
		return answered
	}
	return since
}
