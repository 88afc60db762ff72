package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// minAttempt and maxAttempt bound the time that one attempt on a server gets for
	// the TCP, TLS and ZooKeeper handshakes together. Between these bounds it is half
	// a session timeout divided by the number of servers, so that one round fits into
	// a lease.
	//
	// An attempt to open a session has maxAttempt, if there are other servers: each attempt that is given up may
	// leave a session behind, and a quorum that is slow is as slow everywhere. A server that hangs is left sooner: see
	// attempt.
	minAttempt = time.Second
	maxAttempt = 5 * time.Second

	// settled is how long a connection must last to be good. A connection that breaks sooner,
	// without having answered a request, is a failed attempt: otherwise the client and a server
	// could keep each other busy without a pause. After a connection that has answered a
	// request the pause is the shortest, however soon the connection broke: if a network cuts
	// every connection after a while, the client does best to use what it lets through.
	settled = time.Second

	// silence is how long the servers may do nothing but close connections before
	// Connect gives up. Servers that elect a leader also close connections, and most
	// elections are shorter.
	silence = time.Second
)

// attemptBudget returns the time that one attempt gets, for a session timeout and a number of
// servers.
func attemptBudget(timeout time.Duration, servers int) time.Duration {
	return min(max(timeout/time.Duration(2*servers), minAttempt), maxAttempt)
}

// dialer makes the connections of one session.
type dialer struct {
	session *session
	config  *config
	turns   turns
	life    context.Context // ends when the session needs no more connections

	started time.Time // when the session began to look for a server; immutable

	mu       sync.Mutex
	backoff  *backoff           // the connector's at first; the session's own after the first handshake; guarded by mu
	opening  bool               // no handshake has completed yet; guarded by mu
	tried    int                // failed attempts of the present round; guarded by mu
	due      bool               // the backoff's pause applies before the next attempt; guarded by mu
	since    time.Time          // the time of the last handshake; guarded by mu
	current  string             // the server that is being tried; guarded by mu
	reached  bool               // current has accepted a TCP connection; guarded by mu
	errs     map[string]failure // the newest failure of each server since the last handshake; guarded by mu
	worked   bool               // the newest connection has answered a request; guarded by mu
	hopeless chan struct{}      // closed when further attempts cannot succeed
	closed   bool               // hopeless is closed; guarded by mu
	attempt  *attempt           // the one under way; guarded by mu
	watching sync.WaitGroup     // the watchers of attempts
}

// newDialer makes the dialer of a session that tries the servers in this order.
func newDialer(life context.Context, s *session, c *config, b *backoff, order []string) *dialer {
	return &dialer{
		session:  s,
		config:   c,
		turns:    turns{order: order},
		life:     life,
		started:  time.Now(),
		backoff:  b,
		opening:  true,
		due:      true,
		errs:     make(map[string]failure),
		hopeless: make(chan struct{}),
	}
}

// dial implements zk.Dialer. The client's loop calls it, one call at a time, each
// after the client has finished with the last connection. The client's own timeout is
// ignored.
func (d *dialer) dial(_, _ string, _ time.Duration) (net.Conn, error) {
	// The client has already produced an outcome for every request that was sent.
	// Wait until the callers have received theirs: no reply of the old connection is
	// delivered after the new one has a generation.
	d.session.flight.Wait()
	if err := d.pause(); err != nil {
		return nil, err
	}
	if d.session.giveUp() {
		return nil, errSessionOver
	}
	server := d.turns.turn(d.config.names.all(d.life, &d.watching))
	budget := d.budget()
	d.mu.Lock()
	d.current, d.reached = server, false
	d.mu.Unlock()
	// Once a session was opened, its servers are known to speak ZooKeeper's protocol.
	if d.shouldProbe(server) {
		if err := d.probe(server, budget); err != nil {
			d.failed(server, err)
			return nil, err
		}
	}
	auth, err := d.config.sasl.start(d.life, d.config.names.name(server))
	if err != nil {
		d.failed(server, err)
		return nil, err
	}
	deadline := time.Now().Add(budget)
	ctx, cancel := context.WithDeadline(d.life, deadline)
	defer cancel()
	a := d.begin(d.life, server)
	defer context.AfterFunc(a.ctx, cancel)()
	c, err := d.connect(ctx, server)
	if err != nil {
		d.failed(server, err)
		return nil, err
	}
	c.sasl = auth
	// This deadline applies until the handshake and the authentication are complete; the
	// client's own is far too long.
	if err := c.Conn.SetDeadline(deadline); err != nil {
		_ = c.raw.Close()
		d.failed(server, err)
		return nil, err
	}
	if !d.session.adopt(c) {
		_ = c.raw.Close()
		return nil, errSessionOver
	}
	context.AfterFunc(a.ctx, func() {
		if a.left() != nil {
			_ = c.Conn.SetDeadline(time.Unix(1, 0))
		}
	})
	return c, nil
}

// budget returns the time that the next attempt gets.
func (d *dialer) budget() time.Duration {
	servers, timeout := len(d.turns.all()), d.session.Timeout()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opening && servers > 1 {
		return maxAttempt
	}
	return attemptBudget(timeout, servers)
}

// connect does the TCP and the TLS handshake.
func (d *dialer) connect(ctx context.Context, server string) (*conn, error) {
	raw, err := d.config.dialTCP(ctx, server)
	if err != nil {
		return nil, err
	}
	limitUnacknowledged(raw, patience(d.session.Timeout())*4/3)
	d.mu.Lock()
	d.reached = true
	d.mu.Unlock()
	wrapped := raw
	if d.config.tls != nil {
		if wrapped, err = d.config.tls.wrap(ctx, raw, d.config.names.name(server)); err != nil {
			_ = raw.Close()
			if !permanentTLS(err) {
				err = &unanswered{err}
			}
			return nil, err
		}
	}
	return newConn(d.session, server, raw, wrapped), nil
}

// dialTCP makes a TCP connection to server, if onlyLoopback allows its address.
func (c *config) dialTCP(ctx context.Context, server string) (net.Conn, error) {
	server = c.names.address(server)
	if c.network != nil {
		return c.network.DialContext(ctx, "tcp", server)
	}
	var to net.Dialer
	if c.loopbackOnly {
		to.Control = onlyLoopback
	}
	return to.DialContext(ctx, "tcp", server)
}

// errNotLoopback is the error for a loopback name that resolves to an address of
// another machine.
var errNotLoopback = errors.New("the address is not on this machine, and the password would go there unencrypted: use zks://, or allow it with " + keyAuthPlaintext + "=true")

// onlyLoopback implements net.Dialer.Control, which is called after the name was
// resolved and before anything is sent. "localhost" is a name like others: without a
// hosts file, as in some containers, the DNS server decides its address.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !a.Addr().Unmap().IsLoopback() {
		return errNotLoopback
	}
	return nil
}

// pause waits for the time that the backoff returns, or until the session is over.
// There is a pause before the first attempt, since the attempts of earlier sessions
// may have failed, and after each round of failures. After a good connection was
// lost, the pause is short and random.
func (d *dialer) pause() error {
	timeout := d.session.Timeout()
	var p time.Duration
	d.mu.Lock()
	if !d.since.IsZero() {
		switch {
		case time.Since(d.since) >= settled:
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
	if p > 0 && !sleep(d.life, p) {
		return errSessionOver
	}
	return nil
}

// attemptFailedLocked counts a failed attempt. If it was the last one of its round,
// it also counts the round.
func (d *dialer) attemptFailedLocked() {
	if d.tried++; d.tried >= len(d.turns.all()) {
		d.tried, d.due = 0, true
		d.backoff.failed()
	}
}

// succeeded records a completed handshake. The next session that the connector opens
// need not wait, and this session counts its own failures from now on.
func (d *dialer) succeeded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opening {
		d.opening = false
		d.backoff.reset(0)
		d.backoff = &backoff{}
	}
	d.since = time.Now()
	d.endLocked()
	clear(d.errs)
}

// opens reports whether the session does not exist yet.
func (d *dialer) opens() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opening
}

// answered records that the connection has answered a request.
func (d *dialer) answered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worked = true
}

// knows reports whether the session has met a server: it has failed, or has accepted a connection.
func (d *dialer) knows() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reached || len(d.errs) > 0
}

// errMute is the failure of a server that had not answered yet when the search ended.
var errMute = errors.New("connected, but got no ZooKeeper answer")

// leave prepares the end of a search. A server that has accepted a connection, and has not answered on
// it, has failed so far. That is noted for later sessions, unless they know more of the server.
func (d *dialer) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.backoff.noted(d.current); d.opening && d.reached && !known {
		d.backoff.note(d.current, failure{errMute, passing})
	}
}

// failed records why a server could not be used. An attempt that the end of the session has cut off says
// nothing of the server, and must not take the place of a failure that does.
func (d *dialer) failed(server string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.life.Err() != nil {
		d.endLocked()
		return
	}
	d.attemptFailedLocked()
	if d.attempt != nil {
		if why := d.attempt.left(); why != nil {
			err = &unanswered{why} // and not that its connection was cut for that
		}
	}
	d.endLocked()
	if d.opening && d.closed {
		return // Connect is about to end with the errors that made it hopeless
	}
	kind := classify(err)
	if permanentTLS(err) {
		err = fmt.Errorf("%w: %w", driver.ErrTLS, err)
	}
	d.errs[server] = failure{err, kind}
	d.backoff.note(server, d.errs[server])
	if d.closed || !d.hopelessLocked() {
		return
	}
	d.closed = true
	close(d.hopeless)
}

// hopelessLocked reports whether no further attempt can succeed, as far as the servers have shown. Of the addresses of one name
// those that could not be reached show nothing, if another one has shown what is there. mu is held.
func (d *dialer) hopelessLocked() bool {
	worst := make(map[string]failureKind) // by name
	for _, s := range d.turns.all() {
		f, ok := d.errs[s]
		if !ok {
			return false
		}
		name := d.config.names.name(s)
		worst[name] = max(worst[name], f.kind)
	}
	for _, kind := range worst {
		if kind == passing || kind == silent && time.Since(d.started) < silence {
			return false
		}
	}
	return true
}
