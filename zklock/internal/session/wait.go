package session

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// AwaitLease returns nil when enough of the lease is left to hand out a lock. If it is not
// enough, AwaitLease makes the next heartbeat come early. It returns errs.ErrSessionOver
// when the session ends, the error of WaitEnded when ctx ends, and errs.LeaseUnproven after
// connect_timeout.
func (s *life) AwaitLease(ctx context.Context) error {
	if s.Leased() {
		return nil
	}
	began, limit := lease.Now(), time.NewTimer(s.settings.ConnectTimeout)
	defer limit.Stop()
	s.mu.Lock()
	s.urgent = true
	s.mu.Unlock()
	Poke(s.rouse)
	for {
		left, renewed := s.Left()
		if left >= s.Least() {
			return nil
		}
		select {
		case <-renewed:
			continue
		case <-s.ctx.Done():
		case <-ctx.Done():
		case <-limit.C:
			return errs.LeaseUnproven(s.settings.ConnectTimeout)
		}
		return s.WaitEnded(ctx, began)
	}
}

// Await waits until done is closed. It returns an error if ctx or the session ends before.
func (s *life) Await(ctx context.Context, done <-chan struct{}) error {
	began := lease.Now()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return s.WaitEnded(ctx, began)
}

// WaitEnded returns the error of an operation on the session that began at the instant began
// and that ctx or the end of the session ended. (The wait for another holder is not such an
// operation.) If only the session has ended, that is errs.ErrSessionOver. If the session works, the
// operation waited for an answer, and the error matches errs.ErrUnanswered. Else it waited for a
// session that works, and the error matches errs.ErrUnavailable.
//
// A session works if it is connected, and has answered within the last interval of its
// exchanges, or if the operation began within that interval.
func (s *life) WaitEnded(ctx context.Context, began time.Time) error {
	if ctx.Err() == nil || ctx == s.ctx {
		return errs.ErrSessionOver
	}
	state, _ := s.ds.State()
	quiet := lease.Now().Sub(began)
	s.mu.Lock()
	if heard := lease.Now().Sub(s.heard); heard < quiet {
		quiet = heard
	}
	there := state == driver.Connected && quiet < s.lease.ExchangeEvery()
	s.mu.Unlock()
	if there {
		return errs.WaitEnded(ctx, errs.ErrUnanswered)
	}
	return s.common.Outage(ctx)
}

// Outage returns the error of a wait, for a session that works, that ctx has ended.
func (s *life) Outage(ctx context.Context) error { return s.common.Outage(ctx) }

// Answered returns when an exchange of the session was answered last.
func (s *life) Answered() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(-s.quietLocked(lease.Now()))
}

// UsableAt returns when the session last worked: now if it is connected, and has answered within the last interval of
// its exchanges, else when it answered last.
func (s *life) UsableAt() time.Time {
	state, _ := s.ds.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := s.quietLocked(lease.Now())
	if state == driver.Connected && quiet < s.lease.ExchangeEvery() {
		quiet = 0
	}
	return time.Now().Add(-quiet)
}

// Patient derives the context of a caller whose request has waited for those of others since began, an instant. The
// context ends at until, or, if the session has answered since began, connect_timeout after its last answer, if that is later:
// the loss of a connection alone does not end it.
func (s *life) Patient(ctx context.Context, began, until time.Time) (context.Context, context.CancelFunc) {
	return patient(ctx, errs.ErrNoSession, func() time.Time {
		s.mu.Lock()
		now := lease.Now()
		quiet := min(s.quietLocked(now), now.Sub(s.replied))
		s.mu.Unlock()
		if more := time.Now().Add(s.settings.ConnectTimeout - quiet); quiet < now.Sub(began) && more.After(until) {
			return more
		}
		return until
	})
}

// PatientTry derives the context of a try that waits for answers of the session, from now on. The try
// began at since. The context ends with cause errs.ErrTryOver, as soon as TryTimeout has passed without
// an answer, or connect_timeout since the try began: slow answers may never prove enough of a lease.
func (s *life) PatientTry(ctx context.Context, since time.Time) (context.Context, context.CancelFunc) {
	now, most := time.Now(), since.Add(s.settings.ConnectTimeout)
	return patient(ctx, errs.ErrTryOver, func() time.Time {
		return earlier(s.heardSince(now).Add(s.settings.TryTimeout()), most)
	})
}

// heardSince returns when the session last had an answer, also one to a read, or since if that is
// later, or if the session has no connection.
func (s *life) heardSince(since time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := lease.Now()
	answered := time.Now().Add(-min(s.quietLocked(now), now.Sub(s.replied)))
	if s.cut.IsZero() && answered.After(since) {
		return answered
	}
	return since
}
