package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// described is what the kinds of locks have in common: one name, and how it is
// wanted. It is immutable and does no I/O.
type described struct {
	client *Client
	wants  []place.Want // one
	err    error        // what is wrong with the name, or with the rest
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

// check returns what is wrong with the description, for an Error.
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

// acquire is what all kinds but All come down to.
func acquire(ctx context.Context, d *described, opts []AcquireOption, try bool) (*Lock, error) {
	if err := d.check(); err != nil {
		mode := queue.Exclusive
		if d != nil && len(d.wants) > 0 {
			mode = d.wants[0].Kind.Mode
		}
		return nil, d.knownClient().refused(ctx, d.name(), mode, newAcquireConfig(opts, try), err)
	}
	w := d.wants[0]
	return d.client.acquire(ctx, w.Name, w.Kind.Mode, d.wants, newAcquireConfig(opts, try))
}

// knownClient returns the client that the description was made by, nil if it was not
// made by one that is open.
func (d *described) knownClient() *Client {
	if d == nil || d.client == nil || d.client.pool == nil {
		return nil
	}
	return d.client
}

// Mutex names a lock that is held by one at a time, among all processes that use
// the same ensemble and root. It is a description, not a state: it does no I/O,
// is immutable and cheap, and any number of goroutines may use one, or one each.
// A bad name shows when it is acquired.
type Mutex struct{ d described }

var _ Acquirer = (*Mutex)(nil)

// Mutex returns the mutex of that name. Names are UTF-8 of 1 to 512 bytes, in
// the form of a relative path: no empty segment, none that is "." or "..", and
// no control characters. Two names are two locks unless they are equal byte for
// byte.
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

// Path returns the znode under which the contenders of the lock queue; "" if
// the name is invalid.
func (m *Mutex) Path() string { return m.described().path() }

// Acquire waits for the mutex; see Acquirer.
func (m *Mutex) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, m.described(), opts, false)
}

// TryAcquire takes the mutex if nobody has it or waits for it; see Acquirer.
func (m *Mutex) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return acquire(ctx, m.described(), opts, true)
}

// CheckName says what is wrong with a lock's name, before anything is acquired:
// nil, or an error that matches ErrInvalidName.
func CheckName(name string) error { return queue.CheckName(name) }
