package zkdriver

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection to one server, as the client gets it from the dialer.
// It sits outside TLS, so it sees the frames of the protocol, and it sees each
// of them before the client does: that is where the session learns of
// handshakes and losses, and where whatever would confuse the client stops.
//
// The client writes each frame with exactly one Write, from one goroutine at a
// time, and reads from one goroutine at a time.
type conn struct {
	net.Conn          // what frames go through, TLS or TCP
	raw      net.Conn // the TCP connection; closing it never blocks, TLS may
	server   string
	session  *session

	// The fields down to rest belong to the goroutine that does the handshake
	// and then to the one that reads, which the former starts.
	r     *bufio.Reader
	frame []byte // the memory of the newest frame
	rest  []byte // what of it the client has not read yet

	greeted     bool      // ConnectRequest written; set during the handshake
	established bool      // ConnectResponse read; set during the handshake
	watching    bool      // the session's watches were set again
	worked      bool      // a request of the session's user was answered
	sent        time.Time // when the ConnectRequest was sent, read before that

	generation uint64 // the session's, of this connection; set during the handshake
	counted    bool   // among those established; guarded by session.mu

	mu      sync.Mutex
	pending map[int32]pending // requests without reply, by xid; guarded by mu

	killed atomic.Bool
}

// pending is a request that was written and not answered yet.
type pending struct {
	opcode int32
	at     time.Time
	watch  *arming // what its reply arms, if it is a call of Watch
}

func newConn(s *session, server string, raw, wrapped net.Conn) *conn {
	return &conn{
		Conn:    wrapped,
		raw:     raw,
		server:  server,
		session: s,
		r:       bufio.NewReaderSize(wrapped, 4<<10),
		pending: make(map[int32]pending),
	}
}

// Read implements net.Conn. What it returns has been checked: the first frame
// is a ConnectResponse of this session, all others are long enough for the
// client to parse.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if err := c.next(); err != nil {
			c.kill(err)
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next reads the next frame and acts on it, before the client sees it.
func (c *conn) next() error {
	if !c.established {
		frame, resp, err := readHandshake(c.r)
		if err == nil {
			err = c.session.establish(c, resp)
		}
		if err != nil {
			err = fmt.Errorf("handshake: %w", err)
			c.session.dialer.failed(c.server, err)
			return err
		}
		c.established = true
		c.rest = frame
		return c.Conn.SetDeadline(time.Time{})
	}
	for {
		frame, err := readFrame(c.r, c.frame, maxFrame)
		if err != nil {
			return err
		}
		c.frame = frame
		if cap(frame) > 1<<20 {
			c.frame = nil // do not keep what one huge list needed
		}
		r := parseReply(frame)
		own := r.xid <= setWatchesXid // the client did not ask for it
		if own || r.xid >= 0 {
			if err := c.answered(r, frame); err != nil {
				return err
			}
		}
		if own {
			continue
		}
		if r.xid >= 0 {
			clearZxid(frame)
		}
		c.rest = frame
		return nil
	}
}

// answered settles the request that a reply belongs to.
func (c *conn) answered(r reply, frame []byte) error {
	c.mu.Lock()
	req, ok := c.pending[r.xid]
	delete(c.pending, r.xid)
	c.mu.Unlock()
	if !ok {
		return nil // the client ignores it too
	}
	if req.opcode != opSetAuth { // it comes before the watches are set, and shows nothing
		c.session.zxid.note(r.zxid)
	}
	if !c.worked && (request{opcode: req.opcode}).fromUser() {
		c.worked = true
		c.session.dialer.answered()
	}
	if r.code == 0 {
		if err := checkBody(req.opcode, frame); err != nil {
			return err
		}
	}
	switch {
	case req.watch != nil && r.code == 0:
		c.session.watches.arm(req.watch, c.generation)
	case r.code == codeSessionExpired:
		c.session.expire()
	case req.opcode == opClose && r.code == 0:
		c.session.confirmClose()
	case req.opcode == opSetAuth && r.code == 0:
		return c.setWatches(c.session.Timeout())
	case req.opcode == opSetWatch && r.code != 0:
		// The watches would be dead until the next reconnect: so reconnect.
		return fmt.Errorf("server refused to set watches again: code %d", r.code)
	}
	return nil
}

// Write implements net.Conn. It never reports a failure: the client deadlocks
// when a write fails while it presents credentials again, and leaks when one
// fails while it is closed. A connection that cannot be written to is closed
// instead, which the client's reader finds out without harm.
func (c *conn) Write(p []byte) (int, error) {
	if !c.greeted {
		c.greeted = true
		if id, ok := connectRequestSession(p); !ok || !c.session.resumes(id) {
			c.kill(errSessionOver)
			return len(p), nil
		}
		c.sent = time.Now() // before the write: leases are counted from it
		c.forward(withZxid(p, connectZxid, c.session.zxid.newest()))
		return len(p), nil
	}
	req, ok := parseRequest(p)
	if !ok {
		c.kill(errBadFrame) // the client has never made one so short
		return len(p), nil
	}
	c.request(req, p)
	return len(p), nil
}

// request writes a request. It is registered first, since its reply may be
// faster than the write's return.
func (c *conn) request(req request, frame []byte) {
	at := time.Now()
	watch := c.session.written(c, req.opcode)
	if watch != nil {
		frame = withWatch(frame)
	}
	if req.opcode != opPing {
		c.register(req.xid, pending{req.opcode, at, watch})
	}
	c.forward(frame)
}

// register notes a request whose reply is to come.
func (c *conn) register(xid int32, p pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[xid] = p
}

// forward writes a frame, or kills the connection.
func (c *conn) forward(frame []byte) {
	if c.killed.Load() {
		return
	}
	if _, err := c.Conn.Write(frame); err != nil {
		c.kill(err)
	}
}

// oldest returns when the oldest unanswered request was written.
func (c *conn) oldest() (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		if !ok || p.at.Before(at) {
			at, ok = p.at, true
		}
	}
	return at, ok
}

// kill breaks the connection. Whoever is reading or writing finds out.
func (c *conn) kill(cause error) {
	if c.killed.Swap(true) {
		return
	}
	_ = c.raw.Close() // the connection is given up whatever this says
	c.session.lose(c, cause)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.kill(net.ErrClosed)
	return nil
}

// SetDeadline implements net.Conn. During the handshake the dialer's deadline
// counts, not the client's, which is 6.7 session timeouts.
func (c *conn) SetDeadline(t time.Time) error {
	if !c.established {
		return nil
	}
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn, with the same exception.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.established {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn, with the same exception.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if !c.established {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}
