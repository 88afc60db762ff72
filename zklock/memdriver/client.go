package memdriver

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Pauses between attempts to connect.
const (
	// firstPause is the pause after the loss of a connection.
	firstPause = 10 * time.Millisecond

	// longestPause limits the pause, which grows while no server accepts.
	longestPause = 500 * time.Millisecond
)

// session is the client's side of a session, and implements driver.Session. It keeps
// one connection at a time. When that breaks or falls silent, it makes a new one, to
// the next server. Guarded by the ensemble's mutex.
type session struct {
	e     *Ensemble
	ids   []identity
	route []*server // the servers in the order of the attempts
	hop   int       // the index in route of the next attempt

	id       int64 // 0 until established
	password string
	taken    bool // another client has opened the session, and this one ends it
	asked    time.Duration
	granted  time.Duration
	state    driver.State  // 0 until established
	changed  chan struct{} // made when State is called; closed at the next change
	gen      uint64
	sentAt   time.Time // when the newest completed handshake was sent
	addr     string
	lastZxid int64

	conn   *conn // nil while waiting for the next attempt
	ready  bool  // the handshake on conn is complete
	frozen bool  // between Freeze and thaw: no timer runs, nothing is sent
	broken bool  // conn was lost while frozen: the client notices that at the thaw
	lapsed bool  // Ensemble.Expire was called
	heard  time.Time
	pause  time.Duration
	retry  *event
	ping   *event
	limit  *event // checks heard

	queue   []*request // requests that wait for a connection
	watches map[awaited][]watcher

	up      chan struct{} // closed when the session is first established, or has ended before that
	closing *request      // the request that ends the session, once Close was called
	ended   chan struct{} // closed when the session is over
	over    bool          // ended is closed
	endErr  error         // Close's result
}

// dial tries the next server.
func (s *session) dial() {
	e := s.e
	s.retry = nil
	if s.over || s.frozen {
		return
	}
	srv := s.route[s.hop%len(s.route)]
	s.hop++
	e.made++
	c := &conn{number: e.made, srv: srv, client: s, clientOpen: true, id: s.id, ids: s.ids, asked: e.clock.now}
	c.up = pipe{e: e, delay: e.config.latency}
	c.down = pipe{e: e, delay: e.config.latency}
	s.conn, s.ready = c, false
	e.conns[c] = struct{}{}
	cut, refused := e.cutOff(c)
	if refused {
		s.disconnected(c)
		return
	}
	c.up.cut, c.down.cut = cut, cut
	c.deadline = e.after(max(s.asked, 2*e.config.tick)/3, func() { s.giveUp(c) })
	h := hello{session: s.id, password: s.password, lastZxid: s.lastZxid, timeout: s.asked}
	if s.closing != nil {
		h.lastZxid = 0 // it reads nothing more: a server that is behind may end it, too
	}
	c.up.send(func() { srv.accept(c, h) })
}

// established handles the server's welcome. The generation grows here, before any
// other message can arrive on the connection.
func (s *session) established(c *conn, id int64, timeout time.Duration) {
	if s.conn != c || s.over {
		return
	}
	e := s.e
	e.cancel(c.deadline)
	if s.gen == 0 {
		s.id, s.password = id, password(id) // written once, before Connect returns, since ID reads it without the mutex
	}
	s.granted, s.addr = timeout, c.srv.addr()
	s.gen++
	s.sentAt = c.asked
	s.heard = e.clock.now
	s.pause = 0
	s.ready = true
	if s.closing == nil {
		s.state = driver.Connected
	}
	s.signal()
	if s.gen == 1 {
		e.sessions[id] = s
		close(s.up)
	}
	s.ping = e.after(s.granted/3, s.sendPing)
	s.limit = e.after(s.silence(), s.checkSilence)
	if len(s.watches) > 0 {
		r := &request{kind: requestSetWatches, since: s.lastZxid}
		r.watches = slices.SortedFunc(maps.Keys(s.watches), func(a, b awaited) int {
			return cmp.Or(cmp.Compare(a.list, b.list), cmp.Compare(a.path, b.path))
		})
		s.send(r)
	}
	queue := s.queue
	s.queue = nil
	for _, r := range queue {
		s.send(r)
	}
}

// silence returns how long a client waits for any message from its server: two thirds
// of the session's timeout, which leaves a third to find another server.
func (s *session) silence() time.Duration { return s.granted * 2 / 3 }

func (s *session) checkSilence() {
	left := s.heard.Add(s.silence()).Sub(s.e.clock.now)
	if left <= 0 {
		s.giveUp(s.conn)
		return
	}
	s.limit = s.e.after(left, s.checkSilence)
}

func (s *session) sendPing() {
	s.ping = s.e.after(s.granted/3, s.sendPing)
	s.send(&request{kind: requestPing})
}

// giveUp closes a connection that brings no messages.
func (s *session) giveUp(c *conn) {
	c.abandon()
	s.disconnected(c)
}

// disconnected handles the loss of a connection, whatever its reason.
func (s *session) disconnected(c *conn) {
	if s.frozen && !s.over && s.conn == c {
		s.broken = true
		return
	}
	c.clientOpen = false
	e := s.e
	c.forget()
	if s.conn != c {
		return
	}
	s.conn, s.ready = nil, false
	e.cancel(c.deadline)
	e.cancel(s.ping)
	e.cancel(s.limit)
	lost := c.inflight
	c.inflight = nil
	if s.state == driver.Connected {
		s.state = driver.Suspended
		s.signal()
	}
	for _, r := range lost {
		if r == s.closing {
			// The end of the session is the only request that is sent again: the next
			// handshake shows whether it was executed.
			s.closing = &request{kind: requestCloseSession}
			s.queue = append(s.queue, s.closing)
			continue
		}
		r.finish(driver.ErrConnLoss)
	}
	if s.over {
		return
	}
	s.pause = min(max(firstPause, 2*s.pause), longestPause)
	s.retry = e.after(s.pause, s.dial)
}

// expired handles the server's answer that the session is over.
func (s *session) expired(c *conn) {
	if s.conn == c {
		s.expire()
	}
}

func (s *session) expire() {
	if s.state != driver.Closed {
		s.state = driver.Expired
	}
	s.end(nil, driver.ErrSessionExpired)
}

// lapse makes the client believe that its session has expired, though it lives. The leader ends it
// when the client has closed it. If the client does not, nothing is heard from it, and it expires.
func (s *session) lapse() {
	s.lapsed = true
	if s.frozen {
		return // the client notices at the thaw
	}
	s.expire()
	if s.closing != nil {
		s.letGo()
	}
}

// letGo lets the leader end a session that has lapsed: its client has closed it.
func (s *session) letGo() {
	delete(s.e.sessions, s.id)
	s.e.kill(s.id)
}

// end ends the session and drops everything that belongs to it. Requests that were
// never sent, and watches, get the error why.
func (s *session) end(err, why error) {
	if s.over {
		return
	}
	e := s.e
	s.over = true
	s.endErr = err
	if c := s.conn; c != nil {
		c.abandon()
		s.disconnected(c)
	}
	e.cancel(s.retry)
	for _, r := range s.queue {
		r.finish(why)
	}
	s.queue = nil
	s.dropWatches(why)
	delete(e.clients, s)
	if e.sessions[s.id] == s && !s.lapsed { // Expire, called again, still has to wait for this client
		delete(e.sessions, s.id)
	}
	s.signal()
	if s.gen == 0 {
		close(s.up)
	}
	close(s.ended)
	e.retire()
}

// signal wakes the goroutines that wait for a change of the state or the generation.
func (s *session) signal() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// submit sends a request, now or with the next connection.
func (s *session) submit(r *request) {
	if !s.ready || s.frozen {
		r.own()
		s.queue = append(s.queue, r)
		return
	}
	s.send(r)
}

// send puts a request on the connection. If the pipe is clear and the ensemble has
// only one server, the request is executed before send returns.
func (s *session) send(r *request) {
	c := s.conn
	r.sent = true
	c.inflight = append(c.inflight, r)
	if c.up.clear() {
		if r.direct = s.e.solo; !r.direct {
			r.own()
		}
		c.srv.receive(c, r)
		return
	}
	r.own()
	c.up.send(func() { c.srv.receive(c, r) })
}

// answered handles the answer to a request. Answers arrive in the order of the
// requests.
func (s *session) answered(c *conn, r *request) {
	if s.conn != c {
		return
	}
	s.heard = s.e.clock.now
	s.lastZxid = max(s.lastZxid, r.zxid)
	c.inflight = pop(c.inflight)
	if r == s.closing {
		s.end(nil, driver.ErrClosed)
	}
	if r.done {
		return // the caller has given the request up
	}
	if r.kind.watch() && r.err == nil {
		r.watch = s.addWatch(awaited{r.path, r.list()})
	}
	r.answered = true
	r.finish(r.err)
}

// notified handles a watch event.
func (s *session) notified(c *conn, path string, event driver.EventType) {
	if s.conn != c {
		return
	}
	s.heard = s.e.clock.now
	for _, list := range firedBy(event) {
		key := awaited{path, list}
		for _, w := range s.watches[key] {
			w.ch <- driver.Event{Type: event, Path: path}
			close(w.ch)
		}
		delete(s.watches, key)
	}
}

// watcher is a channel that waits for the event of a path.
type watcher struct {
	ch  chan driver.Event
	gen uint64 // the connection's generation when the channel was last handed out
}

// addWatch returns a channel for an event. If there is a channel that was
// handed out on an earlier connection and has not fired, it returns that one;
// otherwise memory would grow with every reconnect.
func (s *session) addWatch(key awaited) <-chan driver.Event {
	list := s.watches[key]
	for i := range list {
		if w := &list[i]; w.gen != s.gen {
			w.gen = s.gen
			return w.ch
		}
	}
	if s.watches == nil {
		s.watches = make(map[awaited][]watcher)
	}
	w := watcher{make(chan driver.Event, 1), s.gen}
	s.watches[key] = append(list, w)
	return w.ch
}

// dropWatches notifies all watchers that their event will never come.
func (s *session) dropWatches(why error) {
	for key, list := range s.watches {
		for _, w := range list {
			w.ch <- driver.Event{Type: driver.EventSession, Path: key.path, Err: why}
			close(w.ch)
		}
	}
	s.watches = nil
}

// withdraw takes back a request that no caller waits for. It sets the outcome as far as it is
// known.
func (s *session) withdraw(r *request, cause error) {
	if r.done {
		return
	}
	if r.sent {
		r.finish(oneline.Join(cause, driver.ErrConnLoss))
		return
	}
	for i, other := range s.queue {
		if other == r {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			break
		}
	}
	r.finish(oneline.Join(cause, driver.ErrNotSent))
}
