package zklock

import (
	"context"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// lockable is what each kind of lock embeds: names, how they are wanted, and all that a lock does
// before it is acquired. It is immutable and makes no requests.
//
// The methods of the public types call those of lockable. They are not promoted, because a call of a
// promoted method through a nil *Mutex panics, and the package promises an error.
type lockable struct {
	client *Client
	wants  []place.Want // one, or those of a Group, sorted by name; none in a zero value
	err    error        // why it cannot be acquired; nil if it can
}

// lockable returns what a lock of one name embeds. If the name or the kind is wrong, its err says so.
func (c *Client) lockable(name string, k queue.Kind) lockable {
	l := lockable{client: c, wants: []place.Want{{Name: name, Kind: k}}}
	if c == nil || c.pool == nil {
		if l.err = queue.CheckName(name); l.err == nil {
			l.err = errNilClient
		}
		return l
	}
	if l.err = c.cfg.Place.Dialect.CheckName(name); l.err == nil {
		l.wants[0].Path, l.err = c.path(name), c.cfg.Place.Dialect.Allows(k)
	}
	return l
}

// name implements Acquirer.Name.
func (l *lockable) name() string { return l.joined(func(w *place.Want) string { return w.Name }) }

// path returns the paths of the znodes, as name returns the names.
func (l *lockable) path() string { return l.joined(func(w *place.Want) string { return w.Path }) }

// joined joins a text of each name by commas.
func (l *lockable) joined(text func(*place.Want) string) string {
	switch {
	case l == nil || len(l.wants) == 0:
		return ""
	case len(l.wants) == 1:
		return text(&l.wants[0])
	}
	texts := make([]string, len(l.wants))
	for i := range l.wants {
		texts[i] = text(&l.wants[i])
	}
	return strings.Join(texts, ",")
}

// mode returns the mode of one name; that of several is the one that covers the others.
func (l *lockable) mode() queue.Mode {
	if l == nil || len(l.wants) == 0 {
		return queue.Exclusive
	}
	mode := l.wants[0].Kind.Mode
	for i := range l.wants {
		if m := l.wants[i].Kind.Mode; m.Covers(mode) {
			mode = m
		}
	}
	return mode
}

// check returns why it cannot be acquired; nil if it can.
func (l *lockable) check() error {
	switch {
	case l == nil:
		return errNilAcquirer
	case l.err != nil:
		return l.err
	case len(l.wants) == 0:
		return errNoLock
	}
	return nil
}

// acquire implements Acquirer.Acquire and, with try, Acquirer.TryAcquire.
func (l *lockable) acquire(ctx context.Context, opts []AcquireOption, try bool) (*Lock, error) {
	c := l.knownClient()
	if c == nil { // then check has an error, and no hook is called
		return nil, &Error{Op: "acquire", Name: queue.Truncate(l.name(), queue.MaxName), Err: l.check()}
	}
	a := &acquisition{request: local.Request{Name: l.name(), Claim: place.Claim{Mode: l.mode(), Wants: l.wants}}}
	for _, o := range opts {
		if o != nil {
			o.applyAcquire(a)
		}
	}
	a.request.Try = a.request.Try || try
	return c.acquire(ctx, a, l.check())
}

// knownClient returns the client that made it; nil if there is none, or if that was not made by Open
// or OpenConnector.
func (l *lockable) knownClient() *Client {
	if l == nil || l.client == nil || l.client.pool == nil {
		return nil
	}
	return l.client
}
