package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// RWMutex is the name of a lock that has any number of readers at a time, or one writer.
// Like a [Mutex] it has no state. A Mutex with the same name is a writer of the same lock.
//
// Readers and writers get the lock in the order of the queue. There is one exception: for
// handover_time after a process got the lock, further readers of that process join its readers,
// even if a writer of another process queues. They do not join while a writer of their own process
// waits.
type RWMutex struct {
	writer Mutex
	reader Reader
}

// RWMutex returns the lock with the given name, for reading and writing. [Client.Mutex]
// has the rules for names.
func (c *Client) RWMutex(name string) *RWMutex {
	return &RWMutex{Mutex{c.lockable(name, queue.Kind{Mode: queue.Exclusive})}, Reader{c.lockable(name, queue.Kind{Mode: queue.Shared})}}
}

// Writer returns the mutex that writers acquire.
func (m *RWMutex) Writer() *Mutex {
	if m == nil {
		return nil
	}
	return &m.writer
}

// Reader returns the lock that readers acquire.
func (m *RWMutex) Reader() *Reader {
	if m == nil {
		return nil
	}
	return &m.reader
}

// Reader is the lock that readers of an [RWMutex] acquire. Readers hold it together.
type Reader struct{ lockable }

var _ Acquirer = (*Reader)(nil)

func (r *Reader) lock() *lockable {
	if r == nil {
		return nil
	}
	return &r.lockable
}

// Name returns the lock's name.
func (r *Reader) Name() string { return r.lock().name() }

// Path returns the path of the lock's znode; "" if the name is invalid.
func (r *Reader) Path() string { return r.lock().path() }

// Acquire waits until the caller holds the lock for reading; see [Acquirer].
func (r *Reader) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return r.lock().acquire(ctx, opts, false)
}

// TryAcquire acquires the lock for reading if no writer holds it or waits for it; see [Acquirer].
func (r *Reader) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return r.lock().acquire(ctx, opts, true)
}
