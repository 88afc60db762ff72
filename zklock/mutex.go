package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// described is the common part of Mutex, Reader and Semaphore: one name, and how it is
// wanted. It is immutable and makes no requests.
type described struct {
	client *Client
	wants  []place.Want // exactly one; none in a zero value
	err    error        // why it cannot be acquired; nil if it can
}

func (c *Client) describe(name string, k queue.Kind) described {
	d := described{client: c, wants: []place.Want{{Name: name, Kind: k}}}
	if c == nil || c.pool == nil {
		if d.err = queue.CheckName(name); d.err == nil {
			d.err = errNilClient
		}
		return d
	}
	if d.err = c.cfg.Dialect.CheckName(name); d.err == nil {
		d.wants[0].Path, d.err = c.path(name), c.cfg.Dialect.Allows(k)
	}
	return d
}

func (d *described) name() string {
	if d == nil || len(d.wants) == 0 {
		return ""
	}
	return d.wants[0].Name
}

func (d *described) path() string {
	if d == nil || len(d.wants) == 0 {
		return ""
	}
	return d.wants[0].Path
}

// check returns why the description cannot be acquired; nil if it can.
func (d *described) check() error {
	switch {
	case d == nil:
		return errNilAcquirer
	case d.err != nil:
		return d.err
	case len(d.wants) == 0:
		return errNoLock
	}
	return nil
}

// acquire acquires a lock of any kind but All.
func acquire(ctx context.Context, d *described, opts []AcquireOption, try bool) (*Lock, error) {
	cfg := newAcquireConfig(opts, try)
	if err := d.check(); err != nil {
		mode := queue.Exclusive
		if d != nil && len(d.wants) > 0 {
			mode = d.wants[0].Kind.Mode
		}
		return nil, d.knownClient().refused(ctx, d.name(), mode, cfg, err)
	}
	return d.client.acquire(ctx, d.wants[0].Name, d.wants[0].Kind.Mode, d.wants, cfg)
}

// knownClient returns the client that made the description; nil if there is none, or if
// it was not made by Open or OpenConnector.
func (d *described) knownClient() *Client {
	if d == nil || d.client == nil || d.client.pool == nil {
		return nil
	}
	return d.client
}

// Mutex is the name of a lock that has at most one holder at a time, among all processes
// that use the same ensemble and root. It has no state and makes no requests until it is
// acquired. It is immutable and cheap: goroutines may share one, or each make their own.
type Mutex struct{ d described }

var _ Acquirer = (*Mutex)(nil)

// Mutex returns the mutex with the given name. A name is UTF-8 of 1 to 512 bytes, in the
// form of a relative path: no segment between slashes is empty, "." or "..", and control
// characters are not allowed. Acquiring any other name fails with [ErrInvalidName]. Two
// names are the same lock only if they are equal byte for byte.
func (c *Client) Mutex(name string) *Mutex {
	return &Mutex{c.describe(name, queue.Kind{Mode: queue.Exclusive})}
}

func (m *Mutex) described() *described {
	if m == nil {
		return nil
	}
	return &m.d
}

// Name returns the lock's name.
func (m *Mutex) Name() string { return m.described().name() }

// Path returns the path of the lock's znode, below which the queue nodes are; "" if the
// name is invalid.
func (m *Mutex) Path() string { return m.described().path() }

// Acquire waits until the caller holds the mutex; see [Acquirer].
func (m *Mutex) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, m.described(), opts, false)
}

// TryAcquire acquires the mutex if it has no holder and no waiters; see [Acquirer].
func (m *Mutex) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, m.described(), opts, true)
}

// CheckName checks a lock's name by the rules that [Client.Mutex] lists, without acquiring
// anything. It returns nil or an error that matches [ErrInvalidName].
func CheckName(name string) error { return queue.CheckName(name) }
