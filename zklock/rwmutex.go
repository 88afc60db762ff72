package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// RWMutex names a lock that is held by any number of readers together, or by one
// writer alone. Like a Mutex it is a description, and shares its name's queue
// with it: a Mutex is a writer.
//
// Readers and writers get in in the order in which they queue; no reader passes
// a writer that came before it, except readers of one process within
// handover_time of the moment their process got in. A writer that waits in the
// same process stops these.
type RWMutex struct {
	writer Mutex
	reader Reader
}

// RWMutex returns the lock of that name, for reading and writing.
func (c *Client) RWMutex(name string) *RWMutex {
	return &RWMutex{Mutex{c.describe(name, queue.Kind{Mode: queue.Exclusive})}, Reader{c.describe(name, queue.Kind{Mode: queue.Shared})}}
}

// Writer returns the side that is held alone.
func (m *RWMutex) Writer() *Mutex {
	if m == nil {
		return nil
	}
	return &m.writer
}

// Reader returns the side that is held together with other readers.
func (m *RWMutex) Reader() *Reader {
	if m == nil {
		return nil
	}
	return &m.reader
}

// Reader is the reading side of an RWMutex.
type Reader struct{ d described }

var _ Acquirer = (*Reader)(nil)

func (r *Reader) described() *described {
	if r == nil {
		return nil
	}
	return &r.d
}

// Name returns the lock's name.
func (r *Reader) Name() string { return r.described().name() }

// Path returns the znode under which the contenders of the lock queue; "" if
// the name is invalid.
func (r *Reader) Path() string { return r.described().path() }

// Acquire waits until no writer is ahead; see Acquirer.
func (r *Reader) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, r.described(), opts, false)
}

// TryAcquire takes the lock for reading if no writer has it or waits for it; see
// Acquirer.
func (r *Reader) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, r.described(), opts, true)
}
