package zklock

import (
	"context"
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Semaphore names a lock that at most a given number hold at a time, among all
// processes. Like a Mutex it is a description.
//
// Permits are given in the order of the queue. Everybody has to name the same
// number: whoever comes while contenders with another number, or of another kind
// of lock, are in the queue of the name fails with ErrConflict. To change the
// number with a rolling deploy, use a name that contains it, such as
// "workers-5", or let the name go idle first.
type Semaphore struct{ d described }

var _ Acquirer = (*Semaphore)(nil)

// MaxPermits is how many permits a semaphore can have: the first in line watches
// all holders, and should not watch more than is sane.
const MaxPermits = 10_000

// Semaphore returns the semaphore of that name. permits is from 1 to 10,000;
// anything else is ErrConflict when it is acquired.
func (c *Client) Semaphore(name string, permits int) *Semaphore {
	s := &Semaphore{c.describe(name, queue.Kind{Mode: queue.Permit, Permits: permits})}
	if s.d.err == nil && (permits < 1 || permits > MaxPermits) {
		s.d.err = errs.Case(errs.ErrConflict, fmt.Sprintf("a semaphore has 1 to %d permits, not %d", MaxPermits, permits))
	}
	return s
}

func (s *Semaphore) described() *described {
	if s == nil {
		return nil
	}
	return &s.d
}

// Name returns the lock's name.
func (s *Semaphore) Name() string { return s.described().name() }

// Path returns the znode under which the contenders of the lock queue; "" if
// the name is invalid.
func (s *Semaphore) Path() string { return s.described().path() }

// Acquire waits for a permit; see Acquirer.
func (s *Semaphore) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, s.described(), opts, false)
}

// TryAcquire takes a permit if there is one that nobody waits for; see Acquirer.
func (s *Semaphore) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, s.described(), opts, true)
}
