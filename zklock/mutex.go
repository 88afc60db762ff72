package zklock

import (
	"context"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// described is what Mutex, Reader, Semaphore and Group consist of: names, and how they are
// wanted. It is immutable and makes no requests.
type described struct {
	client *Client
	wants  []place.Want // one, or those of a Group, sorted by name; none in a zero value
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

func (d *described) name() string { return d.joined(func(w *place.Want) string { return w.Name }) }

func (d *described) path() string { return d.joined(func(w *place.Want) string { return w.Path }) }

// joined joins a text of each name by commas.
func (d *described) joined(text func(*place.Want) string) string {
	switch {
	case d == nil || len(d.wants) == 0:
		return ""
	case len(d.wants) == 1:
		return text(&d.wants[0])
	}
	texts := make([]string, len(d.wants))
	for i := range d.wants {
		texts[i] = text(&d.wants[i])
	}
	return strings.Join(texts, ",")
}

// mode returns the mode of one name; that of several is exclusive if one of them is.
func (d *described) mode() queue.Mode {
	if d == nil || len(d.wants) == 0 {
		return queue.Exclusive
	}
	for i := range d.wants {
		if d.wants[i].Kind.Mode == queue.Exclusive {
			return queue.Exclusive
		}
	}
	return d.wants[0].Kind.Mode
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

// acquire acquires a lock of any kind.
func acquire(ctx context.Context, d *described, opts []AcquireOption, try bool) (*Lock, error) {
	c := d.knownClient()
	if c == nil { // then the description has an error, and no hook is called
		return nil, &Error{Op: "acquire", Name: queue.Truncate(d.name(), queue.MaxName), Err: d.check()}
	}
	r := &request{name: d.name(), Request: place.Request{Mode: d.mode(), Wants: d.wants}}
	for _, o := range opts {
		if o != nil {
			o.applyAcquire(r)
		}
	}
	r.Try = r.Try || try
	return c.acquire(ctx, r, d.check())
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

// Path returns the path of the lock's znode, the parent of the queue nodes; "" if the name is
// invalid.
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
