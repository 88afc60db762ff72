package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Repeat runs an operation that may be done twice without harm, until its
// outcome is definite. It is the retry loop of all requests but creates. It ends early
// with errs.ErrSessionOver, with ctx, or with ErrUnavailable after connect_timeout
// of trying; when ctx ends, with Session.WaitEnded.
// Clean-up runs on the session's own context and is not bounded by
// connect_timeout: it goes on until it is done or the session is over.
func (s *Session) Repeat(ctx context.Context, kind string, op func(ctx context.Context) error) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if ctx != s.Ctx {
		limited, cancel = context.WithTimeout(ctx, s.settings.ConnectTimeout)
	}
	defer cancel()
	began := lease.Now()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, s.Timeout/10) {
		err := s.Once(limited, kind, op)
		if err == nil {
			return nil
		}
		if !Transient(err) {
			if s.Ended(err) {
				return errs.ErrSessionOver
			}
			return err
		}
		Sleep(limited, s.settings.Jitter(pause), s.Ctx.Done())
		switch {
		case s.Ctx.Err() != nil:
			return errs.ErrSessionOver
		case ctx.Err() != nil:
			return s.WaitEnded(ctx, began)
		case limited.Err() != nil:
			// As text only: that a request's deadline passed is not the caller's
			// deadline passing.
			return fmt.Errorf("%w for %v: %v", errs.ErrUnavailable, s.settings.ConnectTimeout, err)
		}
	}
}

// Interrupted is the error of a pause that ctx or the session's end cut short, in
// what has gone on since began.
func (s *Session) Interrupted(ctx context.Context, began time.Time) error {
	if ctx.Err() != nil {
		return s.WaitEnded(ctx, began)
	}
	return errs.ErrSessionOver
}

// MaxLone is how many requests of a session may be under way at once besides
// group commits and heartbeats. These must never find a long queue before them:
// of ten thousand new names, wanted at once, each has a znode to be created, and
// the lease would run out behind them. It takes far fewer to keep a server busy.
const MaxLone = 64

// Once runs an operation with a request's deadline and the Operation hook, when
// it is its turn.
func (s *Session) Once(ctx context.Context, kind string, op func(ctx context.Context) error) error {
	select {
	case s.lone <- struct{}{}:
		defer func() { <-s.lone }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
	ctx, end := hook.Start(s.settings.Operation, ctx, Operation{Kind: kind, Group: 1, Server: s.DS.Server(), Session: s.DS.ID()})
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout())
	defer cancel()
	err := op(ctx)
	end.Call(err)
	return err
}

// Transient reports whether an operation's error says nothing about what a
// second try would meet.
func Transient(err error) bool {
	return errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrThrottled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Ended reports whether a definite error means that the session is over, and
// sees to it that it is.
func (s *Session) Ended(err error) bool {
	switch {
	case errors.Is(err, driver.ErrSessionExpired):
		s.End(driver.Expired, errs.ErrSessionExpired)
	case errors.Is(err, driver.ErrClosed):
		s.End(driver.Closed, errs.ErrSessionEnded)
	default:
		return false
	}
	return true
}

// Sleep waits for d. It returns false when ctx ends or stop is closed first;
// stop may be nil.
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

// requestTimeout is how long a request may go unanswered at most before its outcome is
// taken for unknown: what ZooKeeper's clients allow a silent server, of the time
// that leases are made of.
func (s *Session) requestTimeout() time.Duration {
	return s.settings.LeaseTimeout(s.Timeout) * 2 / 3
}
