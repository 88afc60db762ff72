package zklock

import (
	"context"
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Semaphore is the name of a lock with a number of permits: at most that many holders have
// one at a time, among all processes. Like a [Mutex] it has no state.
//
// Permits are granted in the order of the queue. The number may change, as in a rolling
// deployment: the limit of a contender is the least number that it and those ahead of it ask
// for. So at any moment no more hold than any of the holders has asked for.
//
// A call takes one permit. A job that needs several acquires a mutex first, then one after
// another, and releases the mutex: so no two that have some wait for each other.
//
// All clients have to use no other kind of lock for the name. A contender that finds another
// kind ahead of it in the queue fails with [ErrConflict].
type Semaphore struct{ lockable }

var _ Acquirer = (*Semaphore)(nil)

// MaxPermits is the most permits that a semaphore can have. There is a limit because the
// first waiter sets a watch on the node of each holder.
const MaxPermits = 10_000

// Semaphore returns the semaphore with the given name and number of permits, from 1 to
// [MaxPermits]. Acquiring one with a number outside of that fails with [ErrConflict]. [Client.Mutex]
// has the rules for names.
func (c *Client) Semaphore(name string, permits int) *Semaphore {
	s := &Semaphore{c.lockable(name, queue.Kind{Mode: queue.Permit, Permits: permits})}
	if s.err == nil && (permits < 1 || permits > MaxPermits) {
		s.err = errs.Case(errs.ErrConflict, fmt.Sprintf("a semaphore has 1 to %d permits, not %d", MaxPermits, permits))
	}
	return s
}

func (s *Semaphore) lock() *lockable {
	if s == nil {
		return nil
	}
	return &s.lockable
}

// Name returns the lock's name.
func (s *Semaphore) Name() string { return s.lock().name() }

// Path returns the path of the lock's znode; "" if the name is invalid.
func (s *Semaphore) Path() string { return s.lock().path() }

// Acquire waits until the caller has a permit; see [Acquirer].
func (s *Semaphore) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return s.lock().acquire(ctx, opts, false)
}

// TryAcquire acquires a permit if one is free and has no waiters; see [Acquirer].
func (s *Semaphore) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return s.lock().acquire(ctx, opts, true)
}
