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
	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// Repeat runs an operation until its outcome is definite, and returns the operation's error.
// It is the retry loop of all requests but creates of queue nodes: the operation must be one
// that can be executed twice without harm.
//
// It gives up when the session is over, with errs.ErrSessionOver; when ctx ends, with the
// error of Session.WaitEnded; and after connect_timeout, with errs.ErrUnavailable.
// Operations that clean up run with the session's own context as ctx, and go on until they
// succeed or the session is over.
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
			// err is included as text only: a request's deadline must not be taken for
			// the caller's deadline.
			if why := s.pool.connector.Diagnose(); why != nil {
				err = why
			}
			return fmt.Errorf("%w for %v: %v", errs.ErrUnavailable, s.settings.ConnectTimeout, err)
		}
	}
}

// Read is Repeat for the read of a node.
func (s *Session) Read(ctx context.Context, kind, path string) (n driver.Node, err error) {
	err = s.Repeat(ctx, kind, func(ctx context.Context) (err error) {
		n, err = s.DS.Get(ctx, path)
		return err
	})
	return n, err
}

// Await waits until done is closed. It returns an error if ctx or the session ends before.
func (s *Session) Await(ctx context.Context, done <-chan struct{}) error {
	began := lease.Now()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	case <-s.Ctx.Done():
	}
	return s.WaitEnded(ctx, began)
}

// MaxLone is how many requests of a session may be under way at once, not counting group
// commits and heartbeats. A heartbeat must never wait behind a long queue of requests, such as
// those for ten thousand new names: the lease would run out. This number is more than enough to
// keep a server busy.
const MaxLone = 64

// Once runs an operation one time, with a request's deadline and the Operation hook. Before
// that it waits until fewer than MaxLone operations are under way.
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
	if end.Call(err); err == nil {
		s.mu.Lock()
		s.replied = lease.Now()
		s.mu.Unlock()
	}
	return err
}

// Transient reports whether an operation that failed with err may succeed the next time.
func Transient(err error) bool {
	return errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrThrottled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Ended reports whether a definite error means that the session is over. If so, it ends the
// session for this client.
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

// requestTimeout returns how long a request may stay unanswered before its outcome is
// unknown. It is two thirds of the time that leases are computed from; ZooKeeper's clients
// allow a silent server two thirds of the session timeout.
func (s *Session) requestTimeout() time.Duration {
	return s.lease.Timeout * 2 / 3
}

// multi runs one transaction of the committer.
func (s *Session) multi(ctx context.Context, kind string, group int, ops []driver.Op) ([]driver.OpResult, error) {
	_, end := hook.Start(s.settings.Operation, ctx, Operation{Kind: kind, Group: group, Server: s.DS.Server(), Session: s.DS.ID()})
	results, err := s.Transact(s.deadline.context(s.Ctx, s.requestTimeout()), ops)
	end.Call(err)
	return results, err
}

// Transact sends a transaction. If it is committed, it proves the lease.
func (s *Session) Transact(ctx context.Context, ops []driver.Op) (results []driver.OpResult, err error) {
	err = s.prove(true, func() (err error) {
		results, err = s.commit(ctx, ops)
		return err
	})
	return results, err
}

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

// Newest returns the greatest transaction id of a write that the client knows.
func (s *Session) Newest() int64 { return s.pool.order.newest.Load() }

// Note records the id of a committed transaction. seen is what Newest returned before the transaction
// was sent. The error matches errs.ErrTokenRegression: no lock may be granted with this id.
func (s *Session) Note(seen, zxid int64) error {
	first, err := s.pool.order.note(seen, zxid)
	if first {
		s.pool.giveUp(seen, zxid)
	}
	return err
}

// commit sends a transaction, and records its id if it was committed. A driver of another project may
// not report ids: they are 0 then.
func (s *Session) commit(ctx context.Context, ops []driver.Op) (results []driver.OpResult, err error) {
	seen := s.Newest()
	results, err = s.DS.Multi(ctx, ops)
	if err == nil && len(results) > 0 {
		s.unchecked.Store(false)
		if zxid := results[0].Zxid; zxid != 0 {
			_ = s.Note(seen, zxid) // this error is for those that acquire
		}
	}
	return results, err
}

// CheckOrder sends a write if none was committed on this session, and it follows a loss: see unchecked.
func (s *Session) CheckOrder(ctx context.Context) error {
	if !s.unchecked.Load() {
		return nil
	}
	return s.Repeat(ctx, "verify", func(ctx context.Context) error {
		_, err := s.Transact(ctx, []driver.Op{driver.CheckOp(s.settings.Root, driver.AnyVersion)})
		return err
	})
}
