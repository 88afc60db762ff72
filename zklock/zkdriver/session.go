package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

var (
	_ driver.Session  = (*session)(nil)
	_ driver.Silencer = (*session)(nil)
)

// errSessionOver is the error that the client gets for connections of a session that
// is over.
var errSessionOver = errors.New("zkdriver: the session is over")

// errNoSession is the error for a peer that answers a client's first handshake as ZooKeeper
// refuses an expired session.
var errNoSession = fmt.Errorf("%w: it answered the request for a new session with session 0, as for a session that has expired (%w)", errNotZooKeeper, driver.ErrProtocol)

// session is one ZooKeeper session on one zk.Conn.
//
// When a session has expired, the client would open a new one and send its queued
// requests there. This package prevents that: a handshake with another session id
// ends life, and after the end of life nothing is dialled.
type session struct {
	zk     *zk.Conn // set before Connect returns; immutable after
	hosts  *hosts
	dialer *dialer
	life   context.Context    // ends when the session needs no more connections
	end    context.CancelFunc // ends life

	authenticates bool // the client presents credentials first on each connection; immutable

	mu         sync.Mutex
	id         int64         // 0 before the first handshake; guarded by mu
	password   driver.Secret // the session's; guarded by mu
	timeout    time.Duration // asked for, then negotiated; guarded by mu
	generation uint64        // guarded by mu
	sent       time.Time     // when the newest handshake was sent; guarded by mu
	server     string        // guarded by mu
	conn       *conn         // the newest one; guarded by mu
	up         bool          // conn is established and not known to be broken; guarded by mu
	expired    bool          // guarded by mu
	closing    bool          // Close was called; guarded by mu
	lost       time.Time     // when the newest established connection broke; guarded by mu
	silent     time.Duration // for how long its server had answered nothing, if that is why it was given up; guarded by mu
	forgotten  bool          // that server answers on other connections; guarded by mu
	attachErr  error         // why the newest attach was not authenticated; nil if it was; guarded by mu
	given      error         // why the session was given up; nil if it was not; guarded by mu
	state      driver.State  // guarded by mu
	changed    chan struct{} // closed and replaced when state or generation change; guarded by mu
	moved      chan struct{} // closed and replaced when one of the fields above changes; guarded by mu
	calls      int           // calls into the client that have not returned; guarded by mu
	idle       chan struct{} // closed when calls falls to 0, nil if no goroutine waits for that; guarded by mu

	over chan struct{} // closed when the session accepts no more requests

	zxid     zxid
	turn     chan struct{}        // held by the one request that is on its way to a connection
	current  atomic.Pointer[send] // that request
	slots    chan struct{}        // limits calls
	flight   sync.WaitGroup       // requests that were written and whose callers still wait
	doubting atomic.Bool          // doubt runs
	strained atomic.Bool          // doubt has ended a connection, and no commit was in time since
	workers  workers
	watches  watches

	confirmed chan struct{} // closed when the server has confirmed the end of the session
	stopped   chan struct{} // closed when nothing of the session is left in this process
	quit      sync.Once     // guards the only call of zk.Conn.Close
	quitting  chan struct{} // closed when that call was started
	quitted   sync.WaitGroup
	close     closer
}

func newSession(c *config, servers []string, b *backoff, timeout time.Duration) *session {
	s := &session{
		authenticates: c.creds != nil,

		timeout:   timeout,
		state:     driver.Suspended,
		changed:   make(chan struct{}),
		moved:     make(chan struct{}),
		over:      make(chan struct{}),
		turn:      make(chan struct{}, 1),
		slots:     make(chan struct{}, maxCalls),
		confirmed: make(chan struct{}),
		stopped:   make(chan struct{}),
		quitting:  make(chan struct{}),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.hosts = newHosts(s.life)
	s.dialer = newDialer(s.life, s, c, b, servers)
	s.workers.init()
	s.watches.init()
	s.close.init()
	return s
}

// ID implements driver.Session.
func (s *session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Timeout implements driver.Session.
func (s *session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Conn implements driver.Session.
func (s *session) Conn() (generation uint64, handshakeSent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation, s.sent
}

// Server implements driver.Session.
func (s *session) Server() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// Silent implements driver.Silencer.
func (s *session) Silent() (quiet time.Duration, forgotten bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent, s.forgotten
}

// State implements driver.Session.
func (s *session) State() (driver.State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}

// setLocked changes to the state, if the present one is not final, and wakes all waiters. A new
// generation is a change even if the state is the same.
func (s *session) setLocked(state driver.State, generation uint64) {
	if s.state.Final() {
		state = s.state
	}
	if state != s.state || generation != s.generation {
		s.state, s.generation = state, generation
		close(s.changed)
		s.changed = make(chan struct{})
	}
	s.moveLocked()
}

// moveLocked wakes the goroutines that wait for changes of other fields than the
// state.
func (s *session) moveLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// adopt makes c the session's connection and closes the previous one. It returns
// false if the session needs no more connections.
func (s *session) adopt(c *conn) bool {
	s.mu.Lock()
	if s.expired || s.life.Err() != nil {
		s.mu.Unlock()
		return false
	}
	previous := s.conn
	s.conn = c
	s.mu.Unlock()
	if previous != nil {
		previous.kill(errSessionOver)
	}
	return true
}

// resumes reports whether a handshake for session id belongs to this session. If the
// client asks for a new session after the first one was made, it has forgotten that
// one; it does not get another.
func (s *session) resumes(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.expired && s.id == id
}

// lastSeen returns the zxid for the session's next handshake: see zxid.
func (s *session) lastSeen() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return 0
	}
	return s.zxid.newest()
}

// establish records a completed handshake that mayEstablish has checked, on a connection that is
// authenticated. It runs before the client sees the handshake, and so before the client can read
// any reply of the connection.
func (s *session) establish(c *conn, resp connectResponse) error {
	if !s.authenticates {
		if err := c.setWatches(resp.timeout); err != nil {
			return fmt.Errorf("setting watches again: %w", err)
		}
	}
	s.mu.Lock()
	if s.expired || s.conn != c || c.killed.Load() {
		s.mu.Unlock()
		return errSessionOver
	}
	s.id, s.password = resp.sessionID, resp.password
	s.timeout = resp.timeout
	s.sent = c.sent
	s.server = c.server
	s.up = true
	s.attachErr = nil
	c.generation, c.counted = s.generation+1, true
	established.add(c.server, 1)
	s.setLocked(driver.Connected, s.generation+1)
	s.mu.Unlock()
	s.dialer.succeeded()
	return nil
}

// mayEstablish checks whether a handshake is for this session. It ends the session if
// the handshake shows that the session no longer exists.
func (s *session) mayEstablish(c *conn, resp connectResponse) error {
	s.mu.Lock()
	first := s.id == 0
	if first && resp.sessionID == 0 {
		s.mu.Unlock()
		return errNoSession
	}
	if first && resp.ofKeeper() && !c.session.dialer.config.allowKeeper {
		s.mu.Unlock()
		return errKeeper
	}
	if !first && resp.sessionID != s.id {
		s.mu.Unlock()
		s.expire()
		return errSessionOver
	}
	if s.expired || s.conn != c || c.killed.Load() {
		s.mu.Unlock()
		return errSessionOver
	}
	s.mu.Unlock()
	return nil
}

// lose records that c is broken.
func (s *session) lose(c *conn, cause error) {
	silent, forgotten := c.quiet(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.counted {
		c.counted = false
		established.add(c.server, -1)
	}
	if s.conn != c || !s.up {
		return
	}
	s.up, s.lost, s.silent, s.forgotten = false, time.Now(), silent, forgotten
	s.setLocked(driver.Suspended, s.generation)
}

// expire ends the session because the ensemble has ended it.
func (s *session) expire() {
	s.mu.Lock()
	if s.expired {
		s.mu.Unlock()
		return
	}
	s.expired = true
	wasOpen := !s.closing
	if wasOpen {
		close(s.over)
	}
	s.setLocked(driver.Expired, s.generation)
	s.mu.Unlock()
	if wasOpen {
		s.watches.end(driver.ErrSessionExpired)
	}
	s.end()
}

// finalErrLocked returns the error for a request after the session's end, nil before
// it.
func (s *session) finalErrLocked() error {
	switch {
	case s.closing:
		return driver.ErrClosed
	case s.expired:
		return driver.ErrSessionExpired
	}
	return nil
}

// finalErr is finalErrLocked for callers that do not hold mu.
func (s *session) finalErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finalErrLocked()
}
