package memdriver

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// conn is one TCP connection between a client and a server, with the state of both
// ends. An end that is closed ignores messages that still arrive.
type conn struct {
	number uint64 // connections are numbered as they are made
	srv    *server
	client peer
	up     pipe // client to server
	down   pipe // server to client

	// The client's end.
	clientOpen bool
	asked      time.Time  // when the handshake was sent
	inflight   []*request // sent, not answered, in order
	deadline   *event     // for the handshake

	// The server's end.
	serverOpen bool
	id         int64 // the session id; 0 until the handshake is complete
	ids        []identity
	timeout    time.Duration
	heard      time.Time  // when the last message of the client arrived
	pending    []*request // arrived, not answered, in order
	watches    map[watched]struct{}
}

// peer is the client's side of a connection. Its methods are called with the ensemble's mutex held.
type peer interface {
	// established and expired are the server's answers to the handshake.
	established(c *conn, id int64, timeout time.Duration)
	expired(c *conn)

	answered(c *conn, r *request)
	notified(c *conn, path string, event driver.EventType)

	// disconnected handles the loss of a connection, whatever its reason.
	disconnected(c *conn)

	// cutID returns the id of the session that cuts name the client by.
	cutID() int64
}

// hello is the client's part of a handshake.
type hello struct {
	session  int64 // 0 for a new one
	password string
	lastZxid int64 // the newest zxid that the client has seen
	timeout  time.Duration
}

// accept is the server's part of a handshake.
func (s *server) accept(c *conn, h hello) {
	if !s.serving() {
		c.down.send(func() { c.client.disconnected(c) })
		return
	}
	c.serverOpen = true
	c.heard = s.e.clock.now
	c.timeout = s.clamp(h.timeout)
	s.conns[c] = struct{}{}
	// A client must not go back in time: it tries another server.
	if h.lastZxid > s.tree.zxid {
		c.hangUp()
		return
	}
	if h.session == 0 {
		tx := &txn{kind: txnCreateSession, session: s.e.newID(s), timeout: c.timeout, origin: s, conn: c}
		s.forward(tx)
		return
	}
	c.id = h.session
	if h.password != password(c.id) {
		s.welcome(c, false)
		return
	}
	if old := s.sessions[c.id]; old != nil {
		old.hangUp()
	}
	s.sessions[c.id] = c
	s.revalidate(c)
}

// clamp limits a requested session timeout to those that the server grants.
func (s *server) clamp(d time.Duration) time.Duration {
	tick := s.e.config.tick
	most := 20 * tick
	if s.maxTimeout > 0 {
		most = s.maxTimeout
	}
	return min(max(d, 2*tick), most)
}

// revalidate asks the leader whether a session whose client reconnects still lives.
// It also makes this server the session's owner: from then on, requests that another
// server forwards for the session are refused. A deposed leader that does not know
// yet that it was deposed answers yes.
func (s *server) revalidate(c *conn) {
	if s.role == leading {
		s.welcome(c, s.leader.adopt(c.id, c.timeout, s))
		return
	}
	link := s.learner
	id, timeout := c.id, c.timeout
	link.up.send(func() {
		if !link.leaderOpen {
			return
		}
		valid := link.leader.adopt(id, timeout, s)
		link.down.send(func() {
			if link.followerOpen {
				s.heard = s.e.clock.now
				s.welcome(c, valid)
			}
		})
	})
}

// welcome ends a handshake: the server accepts the session, or reports that it has
// expired.
func (s *server) welcome(c *conn, valid bool) {
	if !c.serverOpen {
		return
	}
	if valid {
		id, timeout := c.id, c.timeout
		c.down.send(func() { c.client.established(c, id, timeout) })
		return
	}
	c.down.send(func() { c.client.expired(c) })
	c.hangUp()
}

// receive handles a request that has arrived at the server. A request that waits for
// the leader delays everything behind it on the same connection, including the
// answers to pings, as in a server's commit processor.
func (s *server) receive(c *conn, r *request) {
	if !c.serverOpen {
		return
	}
	now := s.e.clock.now
	if now.Sub(c.heard) > c.timeout {
		// Nothing arrived for a whole timeout, so the server has closed the connection. A
		// message that a healed network brings now is too late.
		c.hangUp()
		return
	}
	c.heard = now
	s.touch(c.id, c.timeout)
	if !r.kind.write() {
		if len(c.pending) > 0 {
			c.pending = append(c.pending, r)
			return
		}
		s.read(c, r)
		c.answer(r)
		return
	}
	c.pending = append(c.pending, r)
	tx := &r.txn
	*tx = txn{session: c.id, ids: c.ids, origin: s, conn: c, request: r}
	switch r.kind {
	case requestSync:
		tx.kind = txnSync
	case requestCloseSession:
		tx.kind = txnCloseSession
	default:
		tx.multi = r.kind == requestMulti
		tx.ops, tx.results = r.ops, r.results
	}
	s.e.ops.count(r)
	s.forward(tx)
}

// settle handles the outcome of a request that was sent to the leader.
func (c *conn) settle(tx *txn) {
	if !c.serverOpen {
		return
	}
	s := c.srv
	if tx.err == errSessionMoved {
		// This ends the connection: an answer would make the client trust a
		// connection that no longer belongs to its session.
		c.hangUp()
		return
	}
	if tx.kind == txnCreateSession {
		c.id = tx.session
		s.sessions[c.id] = c
		s.welcome(c, true)
		return
	}
	r := tx.request
	r.err = tx.err
	r.zxid = s.tree.zxid
	r.ready = true
	// Answer in order: a write is answered after all requests before it. The reads
	// that follow it are executed then, and not earlier.
	for len(c.pending) > 0 {
		next := c.pending[0]
		if next.kind.write() && !next.ready {
			return
		}
		c.pending = pop(c.pending)
		if !next.kind.write() {
			s.read(c, next)
		}
		c.answer(next)
	}
}

// answer sends a request's outcome to the client.
func (c *conn) answer(r *request) {
	if c.down.clear() {
		c.client.answered(c, r)
		return
	}
	c.down.send(func() { c.client.answered(c, r) })
}

// hangUp closes the server's end. The client notices that, if the connection is not cut.
func (c *conn) hangUp() {
	if !c.serverOpen {
		return
	}
	c.closeServer()
	c.down.send(func() { c.client.disconnected(c) })
}

func (c *conn) closeServer() {
	s := c.srv
	c.serverOpen = false
	delete(s.conns, c)
	if s.sessions[c.id] == c {
		delete(s.sessions, c.id)
	}
	s.unwatch(c)
	c.pending = nil
	c.forget()
}

// forget drops a connection when both its ends are closed.
func (c *conn) forget() {
	if !c.clientOpen && !c.serverOpen {
		delete(c.srv.e.conns, c)
	}
}

// pop removes the first request. When it was the last one, the array is kept for
// reuse.
func pop(queue []*request) []*request {
	queue[0] = nil
	if len(queue) == 1 {
		return queue[:0]
	}
	return queue[1:]
}

// abandon closes the client's end. The server notices that, if the connection is not cut. Messages
// that were sent before still arrive.
func (c *conn) abandon() {
	if !c.clientOpen {
		return
	}
	c.clientOpen = false
	c.srv.e.cancel(c.deadline)
	c.up.send(func() {
		if c.serverOpen {
			c.closeServer()
		}
	})
}

// reset breaks the connection for both ends at once.
func (c *conn) reset() {
	c.up.breakOff()
	c.down.breakOff()
	if c.serverOpen {
		c.closeServer()
	}
	c.client.disconnected(c)
}
