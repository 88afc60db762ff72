package zkdriver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection to one server, as the dialer returns it to the client. It
// handles frames above TLS, and sees each frame before the client does. Here the
// session learns of handshakes and losses, and anything that would confuse the client
// is stopped.
//
// The client writes each frame with exactly one Write, from one goroutine at a time,
// and reads from one goroutine at a time.
type conn struct {
	net.Conn          // the connection that carries the frames, TLS or TCP
	raw      net.Conn // the TCP connection; closing it never blocks, closing TLS may
	server   string
	session  *session
	sasl     *authentication // nil if the connection does not authenticate by SASL

	// The fields from here to rest belong to the goroutine that does the handshake,
	// and then to the reading goroutine that it starts.
	r     *bufio.Reader
	frame []byte // the buffer of the newest frame
	rest  []byte // the part of it that the client has not read yet

	greeted     bool      // ConnectRequest written; set during the handshake
	established bool      // ConnectResponse read; set during the handshake
	watching    bool      // setWatches was called on this connection
	worked      bool      // a request of the session's user was answered
	sent        time.Time // the time just before the ConnectRequest was sent

	generation uint64 // the session's generation on this connection; set during the handshake
	counted    bool   // included in the tally established; guarded by session.mu

	mu      sync.Mutex
	pending map[int32]pending // requests without a reply, by xid; guarded by mu
	pinged  time.Time         // when the oldest ping without a reply was written; zero if there is none; guarded by mu
	heard   time.Time         // when the newest frame arrived; guarded by mu
	vouched time.Time         // when the server last answered a question on another connection; guarded by mu

	killed atomic.Bool
}

// pending is a request that was written and has not been answered yet.
type pending struct {
	opcode int32
	at     time.Time
	send   *send // the request of the session's user; nil for one of the client or of this package
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

// Read implements net.Conn. Everything that it returns has been checked: the first
// frame is a ConnectResponse of this session, and all others are long enough for the
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

// next reads the next frame and processes it, before the client sees it.
func (c *conn) next() error {
	if !c.established {
		frame, resp, err := readHandshake(c.r)
		if err == nil {
			err = c.session.mayEstablish(c, resp)
		}
		if err == nil {
			if err = c.sasl.run(c.Conn, c.r); err != nil {
				c.session.attachFailed(err)
			} else {
				err = c.session.establish(c, resp)
			}
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
		var large *oversized
		if errors.As(err, &large) {
			frame, err = c.skip(large)
		}
		if err != nil {
			return err
		}
		c.hear()
		c.frame = frame
		if cap(frame) > 1<<20 {
			c.frame = nil // do not keep the memory that one huge list needed
		}
		r := parseReply(frame)
		own := r.xid <= setWatchesXid // the reply to a request of setWatches, which the client does not know
		if r.xid == pingXid {
			c.ping(time.Time{})
		}
		if own || r.xid >= 0 {
			if frame, err = c.answered(r, frame); err != nil {
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

// skip reads a reply above the limit up to its end, without keeping it, and returns an
// answer that its request failed. So the connection goes on, and the request is not sent
// again for the same reply. A frame that answers no read of the session's user is malformed.
func (c *conn) skip(large *oversized) ([]byte, error) {
	frame := make([]byte, prefixLen+replyHeaderLen)
	binary.BigEndian.PutUint32(frame, replyHeaderLen)
	if _, err := io.ReadFull(c.r, frame[prefixLen:]); err != nil {
		return nil, err
	}
	c.mu.Lock()
	req := c.pending[parseReply(frame).xid]
	c.mu.Unlock()
	if req.send == nil || req.opcode != opChildren2 && req.opcode != opGetData {
		return nil, large
	}
	// This counts for the request also if the connection breaks before the reply's end.
	req.send.oversized.Store(large.length)
	if _, err := io.CopyN(io.Discard, c.r, large.length-replyHeaderLen); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(frame[16:], codeOversized)
	return frame, nil
}

// answered processes the reply to a request. It returns the frame for the client: see
// checkBody.
func (c *conn) answered(r reply, frame []byte) ([]byte, error) {
	c.mu.Lock()
	req, ok := c.pending[r.xid]
	delete(c.pending, r.xid)
	c.mu.Unlock()
	if !ok {
		return frame, nil // the client ignores it too
	}
	if s := c.session; s.strained.Load() && (request{opcode: req.opcode}).commits() && time.Since(req.at) < patience(s.Timeout()) {
		s.strained.Store(false)
	}
	if req.opcode != opSetAuth { // its reply arrives before the watches are set, and shows no state
		c.session.zxid.note(r.zxid)
	}
	if req.send != nil {
		req.send.zxid.Store(r.zxid)
	}
	if !c.worked && (request{opcode: req.opcode}).fromUser() {
		c.worked = true
		c.session.dialer.answered()
	}
	if r.code == 0 {
		var err error
		if frame, err = checkBody(req.opcode, frame); err != nil {
			return nil, err
		}
	}
	switch {
	case req.send != nil && req.send.watch != nil && (r.code == 0 || r.code == codeNoNode):
		c.session.watches.arm(req.send.watch, r.code == 0, c.generation)
	case r.code == codeSessionExpired:
		c.session.expire()
	case req.opcode == opClose && r.code == 0:
		c.session.confirmClose()
	case req.opcode == opSetAuth && r.code == 0:
		return frame, c.setWatches(c.session.Timeout())
	case req.opcode == opSetWatch && r.code != 0:
		// Without the reconnect, the watches would be dead until the next one.
		return nil, fmt.Errorf("the server refused to set the session's watches again: error code %d", r.code)
	}
	return frame, nil
}

// Write implements net.Conn. It never returns an error: the client deadlocks if a
// write fails while it presents credentials again, and leaks a goroutine if one fails
// while it is being closed. Instead, a failed write closes the connection; the client's reader
// notices that without harm.
func (c *conn) Write(p []byte) (int, error) {
	if !c.greeted {
		c.greeted = true
		if id, ok := connectRequestSession(p); !ok || !c.session.resumes(id) {
			c.kill(errSessionOver)
			return len(p), nil
		}
		c.sent = time.Now() // taken before the write, since leases are counted from it
		c.forward(withZxid(p, connectZxid, c.session.lastSeen()))
		return len(p), nil
	}
	req, ok := parseRequest(p)
	if !ok {
		c.kill(errBadFrame) // the client never makes a frame that short
		return len(p), nil
	}
	c.request(req, p)
	return len(p), nil
}

// request writes a request. It registers the request first, since the reply may
// arrive before the write returns.
func (c *conn) request(req request, frame []byte) {
	at := time.Now()
	q := c.session.written(c, req.opcode)
	if q != nil && q.watch != nil {
		frame = withWatch(frame)
	}
	if req.opcode == opPing {
		c.ping(at)
	} else {
		c.register(req.xid, pending{req.opcode, at, q})
	}
	c.forward(frame)
}

// register records a request whose reply is expected.
func (c *conn) register(xid int32, p pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[xid] = p
}

// ping records that a ping was written, or with the zero time that one was answered.
func (c *conn) ping(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinged.IsZero() || at.IsZero() {
		c.pinged = at
	}
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

// oldest returns when the oldest unanswered request or ping was written.
func (c *conn) oldest() (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok = c.pinged, !c.pinged.IsZero()
	for _, p := range c.pending {
		if !ok || p.at.Before(at) {
			at, ok = p.at, true
		}
	}
	return at, ok
}

// unanswered marks the requests whose connection this client gives up for want of an answer.
func (c *conn) unanswered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		if p.send != nil {
			p.send.unanswered.Store(true)
		}
	}
}

// hear records that a frame has arrived.
func (c *conn) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
}

// vouch records that the server has answered a question.
func (c *conn) vouch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vouched = time.Now()
}

// unheard returns since when nothing has arrived although a request waits.
func (c *conn) unheard() (since time.Time, ok bool) {
	since, ok = c.oldest()
	c.mu.Lock()
	defer c.mu.Unlock()
	return later(since, c.heard), ok
}

// silent returns since when the server has given no sign of life, on this connection or another one, although a
// request waits.
func (c *conn) silent() (since time.Time, ok bool) {
	since, ok = c.unheard()
	c.mu.Lock()
	defer c.mu.Unlock()
	return later(since, c.vouched), ok
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// kill breaks the connection. Goroutines that read or write on it get an error.
func (c *conn) kill(cause error) {
	if c.killed.Swap(true) {
		return
	}
	if isSilence(cause) {
		c.unanswered() // before the client sees the end of the connection, and returns their errors
	}
	_ = c.raw.Close() // the connection is given up in any case
	c.session.lose(c, cause)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.kill(net.ErrClosed)
	return nil
}

// SetDeadline implements net.Conn. During the handshake the dialer's deadline
// applies, and the client's, which is 6.7 session timeouts, is ignored.
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
