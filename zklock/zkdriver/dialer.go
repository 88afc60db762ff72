package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// minAttempt and maxAttempt bound what one server gets for the TCP and TLS
	// and ZooKeeper handshakes together; in between it is half a session
	// timeout shared by all servers, so that one round fits into a lease.
	minAttempt = time.Second
	maxAttempt = 5 * time.Second

	// settled is how long a connection has to last to count as good. One that
	// breaks sooner, without having answered a request, is as bad as none, or
	// two sides could keep each other busy without a pause. One that has been
	// of use is followed by the shortest pause, however soon it broke: a
	// network that cuts every connection after a while is best met by making
	// use of what it lets through.
	settled = time.Second

	// silence is how long servers may do nothing but close connections until
	// Connect gives up. Servers that elect a leader do so too, and most
	// elections are shorter.
	silence = time.Second
)

// dialer makes the connections of one session.
type dialer struct {
	session *session
	config  *config
	life    context.Context // ends when the session wants no connection any more

	clock   clock
	started time.Time // when the session began to look for a server; immutable

	mu       sync.Mutex
	backoff  *backoff           // the connector's, and the session's own once it was opened; guarded by mu
	opening  bool               // there was no handshake yet; guarded by mu
	tried    int                // attempts of the present round that failed; guarded by mu
	due      bool               // the backoff has to be asked before the next attempt; guarded by mu
	since    time.Time          // of the last handshake; guarded by mu
	current  string             // the server that is being tried; guarded by mu
	reached  bool               // there is a TCP connection to it; guarded by mu
	errs     map[string]failure // the newest failure of each server since the last handshake; guarded by mu
	worked   bool               // the newest connection has answered a request; guarded by mu
	hopeless chan struct{}      // closed when trying on makes no sense
	closed   bool               // hopeless is closed; guarded by mu
}

// failure is why a server could not be used.
type failure struct {
	err  error
	kind failureKind
}

// failureKind says what can be expected of another attempt.
type failureKind uint8

const (
	passing   failureKind = iota // refused, timed out, not resolved
	silent                       // closed before it answered
	permanent                    // no ZooKeeper, a certificate that is not accepted, a password that may not go there
)

func newDialer(life context.Context, s *session, c *config, b *backoff) *dialer {
	return &dialer{
		session:  s,
		config:   c,
		life:     life,
		clock:    b.clock,
		started:  b.clock.now(),
		backoff:  b,
		opening:  true,
		due:      true,
		errs:     make(map[string]failure),
		hopeless: make(chan struct{}),
	}
}

// dial implements zk.Dialer. It is called from the client's loop, one call at
// a time, each after the last connection is done with; the client's own
// timeout is ignored.
func (d *dialer) dial(_, server string, _ time.Duration) (net.Conn, error) {
	// Everything that was sent has its outcome by now, the client saw to that.
	// Callers receive theirs before a new connection can have a generation: no
	// reply of the old one is delivered after that.
	d.session.flight.Wait()
	if err := d.pause(); err != nil {
		return nil, err
	}
	budget := min(max(d.session.Timeout()/time.Duration(2*len(d.config.servers)), minAttempt), maxAttempt)
	d.mu.Lock()
	d.current, d.reached = server, false
	d.mu.Unlock()
	// A session that was opened knows what its servers speak.
	if d.shouldProbe(server) {
		if err := d.probe(server, budget); err != nil {
			d.failed(server, err)
			return nil, err
		}
	}
	deadline := time.Now().Add(budget)
	ctx, cancel := context.WithDeadline(d.life, deadline)
	defer cancel()
	c, err := d.connect(ctx, server)
	if err != nil {
		d.failed(server, err)
		return nil, err
	}
	// Until the handshake is over, for which the client allows far too long.
	if err := c.Conn.SetDeadline(deadline); err != nil {
		_ = c.raw.Close()
		d.failed(server, err)
		return nil, err
	}
	if !d.session.adopt(c) {
		_ = c.raw.Close()
		return nil, errSessionOver
	}
	return c, nil
}

// connect does the TCP and the TLS handshake.
func (d *dialer) connect(ctx context.Context, server string) (*conn, error) {
	raw, err := d.dialTCP(ctx, server)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.reached = true
	d.mu.Unlock()
	wrapped := raw
	if d.config.tls != nil {
		if wrapped, err = d.config.tls.wrap(ctx, raw, server); err != nil {
			_ = raw.Close()
			if !permanentTLS(err) {
				err = &unanswered{err}
			}
			return nil, err
		}
	}
	return newConn(d.session, server, raw, wrapped), nil
}

// dialTCP makes a connection, if it may go there.
func (d *dialer) dialTCP(ctx context.Context, server string) (net.Conn, error) {
	var to net.Dialer
	if d.config.loopbackOnly {
		to.Control = onlyLoopback
	}
	return to.DialContext(ctx, "tcp", server)
}

// errNotLoopback is why an address is not dialled that a name has turned out to
// stand for.
var errNotLoopback = errors.New("not on this machine, and a password would go there unencrypted: use zks://, or say " + keyAuthPlaintext + "=true")

// onlyLoopback implements net.Dialer.Control, which is asked once the name is
// resolved and before anything is sent. "localhost" is a name like others: where
// there is no hosts file, as in some containers, whoever answers for DNS says
// what it stands for.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !a.Addr().Unmap().IsLoopback() {
		return errNotLoopback
	}
	return nil
}

// pause waits as long as the backoff says, or until the session is over: before the
// first attempt, since those of sessions before it may have failed, and after each
// round of failures. It also waits for a moment after a connection that was good.
func (d *dialer) pause() error {
	timeout := d.session.Timeout()
	var p time.Duration
	d.mu.Lock()
	if !d.since.IsZero() {
		switch {
		case d.clock.now().Sub(d.since) >= settled:
			d.backoff.reset(0)
			d.tried, d.due = 0, false
			p = rand.N(max(min(timeout/firstPause, maxFirstPause), 1))
		case d.worked:
			d.backoff.reset(1)
			d.tried, d.due = 0, true
		default:
			d.attemptFailedLocked()
		}
		d.since, d.worked = time.Time{}, false
	}
	if d.due {
		p, d.due = d.backoff.left(timeout), false
	}
	d.mu.Unlock()
	if d.life.Err() != nil {
		return errSessionOver
	}
	if p > 0 && !d.clock.sleep(d.life, p) {
		return errSessionOver
	}
	return nil
}

// attemptFailedLocked counts an attempt that was in vain, and the round if it was
// the last one.
func (d *dialer) attemptFailedLocked() {
	if d.tried++; d.tried >= len(d.config.servers) {
		d.tried, d.due = 0, true
		d.backoff.failed()
	}
}

// succeeded notes a completed handshake. The next session that the connector opens
// has no reason to wait, and from now on this one counts for itself.
func (d *dialer) succeeded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opening {
		d.opening = false
		d.backoff.reset(0)
		d.backoff = &backoff{clock: d.clock}
	}
	d.since = d.clock.now()
	clear(d.errs)
}

// answered notes that the connection was of use.
func (d *dialer) answered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worked = true
}

// failed notes why a server could not be used.
func (d *dialer) failed(server string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attemptFailedLocked()
	kind := classify(err)
	if permanentTLS(err) {
		err = fmt.Errorf("%w: %w", driver.ErrTLS, err)
	}
	d.errs[server] = failure{err, kind}
	d.backoff.note(server, d.errs[server])
	if d.closed || len(d.errs) < d.distinct() {
		return
	}
	for _, f := range d.errs {
		if f.kind == passing || f.kind == silent && d.clock.now().Sub(d.started) < silence {
			return
		}
	}
	d.closed = true
	close(d.hopeless)
}

// distinct is the number of different servers.
func (d *dialer) distinct() int {
	seen := make(map[string]struct{}, len(d.config.servers))
	for _, s := range d.config.servers {
		seen[s] = struct{}{}
	}
	return len(seen)
}

// classify says what can be expected of another attempt.
func classify(err error) failureKind {
	switch {
	case errors.Is(err, ErrNotZooKeeper), errors.Is(err, errNotLoopback), permanentTLS(err):
		return permanent
	case errors.Is(err, errNoQuorum):
		return silent
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return passing
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return silent
	}
	return passing
}

// err says which servers were tried and why each of them failed, and, if the
// search was cut short by a context, its cause.
func (d *dialer) err(cause error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := &connectError{}
	if cause != nil {
		e.text = append(e.text, cause.Error())
		e.errs = append(e.errs, cause)
	}
	for _, s := range d.config.servers {
		f, ok := d.errs[s]
		if !ok && s != d.current {
			f, ok = d.backoff.noted(s) // an earlier session's
		}
		switch {
		case !ok && s == d.current && d.reached:
			e.text = append(e.text, s+": connected, but got no ZooKeeper answer yet")
			continue
		case !ok && s == d.current:
			e.text = append(e.text, s+": no answer yet")
			continue
		case !ok:
			e.text = append(e.text, s+": not tried yet")
			continue
		case f.kind == silent:
			e.errs = append(e.errs, ErrNotZooKeeper)
			f.err = d.closedEarly(s, f.err)
		}
		e.text = append(e.text, s+": "+f.err.Error())
		e.errs = append(e.errs, f.err)
	}
	e.errs = append(e.errs, driver.ErrNotSent)
	return e
}

// closedEarly says what it may mean that a server closes connections at once. How it
// was noticed, by a reset for instance, says no more.
func (d *dialer) closedEarly(server string, err error) error {
	const limit = "as many connections from this address as its maxClientCnxns allows, which is 60 by default"
	if d.backoff.hadNoQuorum(server) {
		return errNoQuorum
	}
	if n := established.of(server); n > 0 {
		// So it is a ZooKeeper server, and the scheme is the right one.
		return &verdict{fmt.Sprintf("closed the connection before it answered (it has %s: this process alone has %d; or it has no quorum)", limit, n), []error{err}}
	}
	tls := "expects TLS, which takes zks://"
	if d.config.tls != nil {
		tls = "speaks no TLS, which takes zk:// and not zks://"
	}
	return &verdict{fmt.Sprintf("closed the connection before it answered (%v, or it has no quorum, or it has %s, or it %s)", ErrNotZooKeeper, limit, tls), []error{err, ErrNotZooKeeper}}
}

// connectError is why no session could be made. It unwraps to the reason of
// each server, and to driver.ErrNotSent.
type connectError struct {
	text []string
	errs []error
}

// Error implements error.
func (e *connectError) Error() string {
	return "zkdriver: no session: " + strings.Join(e.text, "; ")
}

// Unwrap makes the reasons reachable by errors.Is and errors.As.
func (e *connectError) Unwrap() []error { return e.errs }
