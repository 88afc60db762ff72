package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Mutex is the name of a lock that has at most one holder at a time, among all processes
// that use the same ensemble and root. It has no state and makes no requests until it is
// acquired. It is immutable and cheap: goroutines may share one, or each make their own.
type Mutex struct{ lockable }

var _ Acquirer = (*Mutex)(nil)

// Mutex returns the mutex with the given name. A name is UTF-8 of 1 to 512 bytes, in the
// form of a relative path: no segment between slashes is empty, "." or "..", and control
// characters are not allowed. Acquiring any other name fails with [ErrInvalidName]. Two
// names are the same lock only if they are equal byte for byte.
func (c *Client) Mutex(name string) *Mutex {
	return &Mutex{c.lockable(name, queue.Kind{Mode: queue.Exclusive})}
}

func (m *Mutex) lock() *lockable {
	if m == nil {
		return nil
	}
	return &m.lockable
}

// Name returns the lock's name.
func (m *Mutex) Name() string { return m.lock().name() }

// Path returns the path of the lock's znode, the parent of the queue nodes; "" if the name is
// invalid.
func (m *Mutex) Path() string { return m.lock().path() }

// Acquire waits until the caller holds the mutex; see [Acquirer].
func (m *Mutex) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return m.lock().acquire(ctx, opts, false)
}

// TryAcquire acquires the mutex if it has no holder and no waiters; see [Acquirer].
func (m *Mutex) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return m.lock().acquire(ctx, opts, true)
}

// CheckName checks a lock's name by the rules that [Client.Mutex] lists, without acquiring
// anything. It returns nil or an error that matches [ErrInvalidName].
func CheckName(name string) error { return queue.CheckName(name) }
