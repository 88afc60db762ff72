package zklock

import (
	"context"
	"fmt"
)

// Mutex names a lock that is held by one at a time, among all processes that use
// the same ensemble and root. It is a description, not a state: it does no I/O,
// is immutable and cheap, and any number of goroutines may use one, or one each.
// A bad name shows when it is acquired.
type Mutex struct {
	client *Client
	name   string
	path   string
	err    error // what is wrong with the name
}

var _ Acquirer = (*Mutex)(nil)

// Mutex returns the mutex of that name. Names are UTF-8 of 1 to 512 bytes, in
// the form of a relative path: no empty segment, none that is "." or "..", and
// no control characters. Two names are two locks unless they are equal byte for
// byte.
func (c *Client) Mutex(name string) *Mutex {
	m := &Mutex{client: c, name: name}
	switch m.err = checkName(name); {
	case m.err != nil:
	case c == nil || c.pool == nil:
		m.err = fmt.Errorf("%w: its Client was not made by Open", ErrInvalidName)
	default:
		m.path = c.cfg.root + "/" + encodeName(name)
	}
	return m
}

// Name returns the lock's name.
func (m *Mutex) Name() string {
	if m == nil {
		return ""
	}
	return m.name
}

// Path returns the znode under which the contenders of the lock queue; "" if
// the name is invalid.
func (m *Mutex) Path() string {
	if m == nil {
		return ""
	}
	return m.path
}

// Acquire waits for the mutex; see Acquirer.
func (m *Mutex) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return m.acquire(ctx, opts, false)
}

// TryAcquire takes the mutex if nobody has it or waits for it; see Acquirer.
func (m *Mutex) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return m.acquire(ctx, opts, true)
}

func (m *Mutex) acquire(ctx context.Context, opts []AcquireOption, try bool) (*Lock, error) {
	switch {
	case m == nil:
		return nil, &Error{Op: "acquire", Err: errNilAcquirer}
	case m.client == nil && m.err == nil:
		return nil, &Error{Op: "acquire", Err: fmt.Errorf("%w: the Mutex was not made by Client.Mutex", ErrInvalidName)}
	case m.err != nil:
		return nil, &Error{Op: "acquire", Name: truncate(m.name, maxName), Err: m.err}
	}
	return m.client.acquire(ctx, m.name, m.path, Exclusive, newAcquireConfig(opts, try))
}
