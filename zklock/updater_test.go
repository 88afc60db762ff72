package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// This is the second of the two files of a new kind of lock: its public type. Outside of tests its name
// is updater.go, and contender.go has a constant Update, as it has Exclusive, Shared and Permit, if
// programs should compare a lock's mode with it.

// Updater is the lock that update holders of an [RWMutex] acquire: one at a time, together with readers.
type Updater struct{ lockable }

var _ Acquirer = (*Updater)(nil)

// NewUpdater returns the update lock with the given name. Outside of tests it is a method of the Client,
// as Client.Mutex is: TestNothingElseIsExported allows no such method in a test.
func NewUpdater(c *Client, name string) *Updater {
	return &Updater{c.lockable(name, queue.Kind{Mode: update})}
}

func (u *Updater) lock() *lockable {
	if u == nil {
		return nil
	}
	return &u.lockable
}

// Name returns the lock's name.
func (u *Updater) Name() string { return u.lock().name() }

// Path returns the path of the lock's znode; "" if the name is invalid.
func (u *Updater) Path() string { return u.lock().path() }

// Acquire waits until the caller holds the update lock; see [Acquirer].
func (u *Updater) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return u.lock().acquire(ctx, opts, false)
}

// TryAcquire acquires the update lock if no writer and no other update lock is in the queue; see
// [Acquirer].
func (u *Updater) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return u.lock().acquire(ctx, opts, true)
}
