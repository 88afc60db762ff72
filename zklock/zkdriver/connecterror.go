package zkdriver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// err returns an error with the reason for each server that was tried. If a context ended the
// search, cause is the context's cause, and the text begins with it.
func (d *dialer) err(cause error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := &connectError{reconnects: !d.opening}
	if cause != nil {
		e.cause = cause
		e.errs = append(e.errs, cause)
	}
	for _, s := range d.turns.all() {
		f, ok := d.errs[s]
		before := false // an earlier session has met f, which the newest attempt may still meet
		if !ok {
			// This session has recorded no failure of the server, but an earlier one may have. For
			// the server that is being tried now, that failure takes the place of "no answer yet" only
			// if the server closed the connection before it answered: that says more. A passing one
			// is added. A permanent failure is not used: it would end the caller's search, and the
			// server may have changed.
			f, ok = d.backoff.noted(s)
			before = ok && f.kind == passing
			ok = ok && (s != d.current || f.kind == silent)
		}
		switch {
		case !ok && s == d.current && d.reached:
			e.because(s, "connected, but got no ZooKeeper answer yet")
			continue
		case !ok && s == d.current && before: // a busy machine can be slow to be refused once more
			e.because(s, fmt.Sprintf("no answer yet (before that: %v)", f.err))
			e.errs = append(e.errs, f.err)
			continue
		case !ok && s == d.current:
			e.because(s, "no answer yet")
			continue
		case !ok:
			e.because(s, "not tried yet")
			continue
		case f.kind == silent && !errors.As(f.err, new(*brokenExchange)):
			if d.opening { // else it was one before
				e.errs = append(e.errs, errNotZooKeeper)
			}
			f.err = d.closedEarly(s, f.err)
		}
		e.because(s, f.err.Error())
		e.errs = append(e.errs, f.err)
	}
	e.errs = append(e.errs, driver.ErrNotSent)
	return e
}

// closedEarly lists the possible reasons why a server closes connections at once. How
// that was noticed, for instance by a reset, does not narrow them down.
func (d *dialer) closedEarly(server string, err error) error {
	const limit = "reached its maxClientCnxns, the number of connections it accepts from one address (60 by default)"
	if reason := d.backoff.verdict(server); reason != nil {
		return reason
	}
	if !d.opening {
		return &verdict{fmt.Sprintf("closed the connection before it answered: either it does not know transaction %#x, which this session has seen, since it lags behind or has lost its data; or it has no quorum, or it has %s",
			uint64(d.session.zxid.newest()), limit), []error{err}}
	}
	if n := established.of(server); n > 0 {
		// A connection has succeeded, so it is a ZooKeeper server and the scheme is
		// correct.
		return &verdict{fmt.Sprintf("closed the connection before it answered: either it has no quorum, or it has %s; this process alone has %d", limit, n), []error{err}}
	}
	tls := "it expects TLS: use zks:// instead of zk://"
	if d.config.tls != nil {
		tls = "it speaks no TLS: use zk:// instead of zks://, or see in its log why it cannot"
	}
	return &verdict{fmt.Sprintf("closed the connection before it answered: either it is %v, or it has no quorum, or it has %s, or %s", errNotZooKeeper, limit, tls), []error{err, errNotZooKeeper}}
}

// connectError is the reason why no session could be opened, or why one has no connection. It unwraps
// to the reason of each server, and to driver.ErrNotSent.
type connectError struct {
	reconnects bool  // the session was opened
	cause      error // of the context that ended the search; nil if none has
	reasons    []reason
	errs       []error
}

// reason is why servers gave out no session.
type reason struct {
	servers []string
	text    string
}

// because adds the reason of a server. One that several servers have, such as a keytab, is shown once.
func (e *connectError) because(server, text string) {
	for i, r := range e.reasons {
		if r.text == text {
			e.reasons[i].servers = append(r.servers, server)
			return
		}
	}
	e.reasons = append(e.reasons, reason{[]string{server}, text})
}

// Error implements error.
func (e *connectError) Error() string {
	what := "zkdriver: no session could be opened: "
	if e.reconnects {
		what = "zkdriver: the session has no connection: "
	}
	var text []string
	if e.cause != nil {
		text = append(text, e.cause.Error())
	}
	for _, r := range e.reasons {
		last := len(r.servers) - 1
		servers := r.servers[last]
		if last > 0 {
			servers = strings.Join(r.servers[:last], ", ") + " and " + servers
		}
		text = append(text, servers+": "+r.text)
	}
	return what + strings.Join(text, "; ")
}

// Unwrap lets errors.Is and errors.As find the reasons.
func (e *connectError) Unwrap() []error { return e.errs }
