package served

import (
	"net/http"
	"sync"
	"time"
)

// Cut ends the reads and writes of a request that wait for its client when the request's lock was held for
// too long. A handler that does something else keeps its connection, and can still answer. A nil Cut ends
// nothing.
type Cut struct {
	room  time.Duration
	timer *time.Timer

	mu      sync.Mutex
	conn    deadlines // guarded by mu; the response's, or the connection that the handler has taken over
	taken   bool      // guarded by mu; it has
	stopped bool      // guarded by mu; the handler has returned
	due     bool      // guarded by mu; the time is over
	reading waits     // guarded by mu
	writing waits     // guarded by mu
}

// deadlines is what ends reads and writes.
type deadlines interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// waits is the reads or the writes of a request.
type waits struct {
	now int       // how many are under way
	end time.Time // their deadline; zero before it was set for the first time
}

// NewCut returns a Cut for the response w of a request that may hold its lock for maxHold. Stop ends it.
func NewCut(w http.ResponseWriter, maxHold time.Duration) *Cut {
	c := &Cut{room: Room(maxHold), conn: http.NewResponseController(w)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(maxHold, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.due = true
		c.apply()
	})
	return c
}

// apply sets the deadlines of what is under way. It does so again and again, since a handler may set others before each read or
// write, as servers of WebSockets do. Its caller holds mu.
func (c *Cut) apply() {
	if !c.due || c.stopped {
		return
	}
	// A middleware that answers while the handler still runs may leave it with a response that the server has
	// taken back, which panics.
	defer func() { _ = recover() }()
	at := time.Now().Add(c.room)
	var gone error
	// An error means that the writer has no connection of its own, or that the handler has closed the one that it took over.
	// The first write of an HTTP/1 response reads the rest of the request's body before.
	if c.reading.now+c.writing.now > 0 {
		gone = c.conn.SetReadDeadline(c.reading.by(at))
	}
	if c.writing.now > 0 {
		_ = c.conn.SetWriteDeadline(c.writing.by(at))
	}
	if c.taken && gone == nil {
		c.timer.Reset(max(c.room, 10*time.Millisecond))
	}
}

// by returns the deadline, which is at if there was none before.
func (w *waits) by(at time.Time) time.Time {
	if w.end.IsZero() {
		w.end = at
	}
	return w.end
}

// add counts a read or a write that begins or ends.
func (c *Cut) add(n int, w *waits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.now += n
	c.apply()
}

// Read calls read, which may wait for the client.
func (c *Cut) Read(read func() (int, error)) (int, error) {
	c.add(1, &c.reading)
	defer c.add(-1, &c.reading)
	return read()
}

// BeginWrite is for before a write that may wait for the client, and EndWrite for after it.
func (c *Cut) BeginWrite() {
	if c != nil {
		c.add(1, &c.writing)
	}
}

// EndWrite is for after a write.
func (c *Cut) EndWrite() {
	if c != nil {
		c.add(-1, &c.writing)
	}
}

// Hijack is for a handler that takes over the connection. Nothing shows what it does with conn, so its
// deadline is set in any case, and from time to time until the handler returns.
func (c *Cut) Hijack(conn deadlines) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.taken, c.reading, c.writing = conn, true, waits{now: 1}, waits{now: 1}
	c.apply()
}

// Stop is for when the handler has returned: from then on the response may belong to others.
func (c *Cut) Stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}
