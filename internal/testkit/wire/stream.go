package wire

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream carries bytes one way. It never blocks its writer. A goroutine that reads waits on channels
// only, so in a synctest bubble it blocks durably.
type stream struct {
	net  *Network
	host *host
	up   bool          // from client to server
	wake chan struct{} // cap 1: the only reader looks again

	mu       sync.Mutex
	chunks   []chunk   // written and not read, in order; guarded by mu
	last     time.Time // when the newest of them arrives; guarded by mu
	late     time.Time // before that, nothing arrives that is sent now; guarded by mu
	silent   int       // if positive, nothing arrives; guarded by mu
	halve    func()    // called when half of the next frame was sent, and nothing behind it arrives; guarded by mu
	err      error     // what the reader gets at once; guarded by mu
	deadline time.Time // the reader's; guarded by mu
}

// chunk is a piece of the stream.
type chunk struct {
	at   time.Time // when it arrives
	data []byte    // nil for the end of the stream
}

func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write sends data, or with nil the end of the stream.
func (s *stream) write(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halve != nil && len(data) > 1 {
		half := len(data) / 2
		s.putLocked(data[:half], 0)
		s.halve()
		s.halve, data = nil, data[half:]
	}
	pieces := s.net.pieces(len(data))
	for len(pieces) > 0 {
		s.putLocked(data[:pieces[0]], time.Microsecond)
		data, pieces = data[pieces[0]:], pieces[1:]
	}
	if data == nil {
		s.putLocked(nil, 0)
	}
	s.poke()
}

// putLocked sends one piece, which arrives after those before it.
func (s *stream) putLocked(data []byte, gap time.Duration) {
	at := time.Now().Add(s.net.travel(s.host, s.up))
	if least := s.last.Add(gap); at.Before(least) && len(s.chunks) > 0 {
		at = least
	}
	if at.Before(s.late) {
		at = s.late
	}
	s.last = at
	var copied []byte
	if data != nil {
		copied = append(make([]byte, 0, len(data)), data...)
	}
	s.chunks = append(s.chunks, chunk{at, copied})
}

// delay delays all that is sent from now on.
func (s *stream) delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = time.Now().Add(d)
}

// read returns what has arrived, or waits for it.
func (s *stream) read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		now, until := time.Now(), s.deadline
		arrived := len(s.chunks) > 0 && s.silent == 0
		switch {
		case s.err != nil:
			defer s.mu.Unlock()
			return 0, s.err
		case !until.IsZero() && !now.Before(until):
			defer s.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case arrived && !s.chunks[0].at.After(now):
			defer s.mu.Unlock()
			c := &s.chunks[0]
			if c.data == nil {
				return 0, io.EOF // and again
			}
			n := copy(p, c.data)
			if c.data = c.data[n:]; len(c.data) == 0 {
				s.chunks = s.chunks[1:]
			}
			return n, nil
		case arrived && (until.IsZero() || s.chunks[0].at.Before(until)):
			until = s.chunks[0].at
		}
		s.mu.Unlock()
		if until.IsZero() {
			<-s.wake
			continue
		}
		timer := time.NewTimer(until.Sub(now))
		select {
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// silence stops the stream until lift is called. What was sent arrives then, as after a retransmission.
func (s *stream) silence() (lift func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silenceLocked()
}

func (s *stream) silenceLocked() (lift func()) {
	s.silent++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.silent--
		s.poke()
	})
}

// unacknowledged reports whether something that was sent cannot arrive, and a kernel would have sent it twice again.
func (s *stream) unacknowledged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent > 0 && len(s.chunks) > 0 && time.Since(s.chunks[0].at) > resent
}

// resent is how long Linux takes until it sends a segment for the third time, to a peer that is near.
const resent = 800 * time.Millisecond

// fail gives the reader an error, now and later.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err, s.chunks = err, nil
	}
	s.poke()
}

// end is one end of a connection.
type end struct {
	in, out       *stream
	local, remote net.Addr
	proxied       bool // a balancer acknowledges what is sent
	close         sync.Once

	mu       sync.Mutex
	unheard  bool      // no acknowledgement arrives: see Conn.Forget; guarded by mu
	unproven time.Time // when the oldest was written since then; guarded by mu
}

var _ net.Conn = (*end)(nil)

func (e *end) Read(p []byte) (int, error) {
	n, err := e.in.read(p)
	if err != nil && err != io.EOF {
		err = &net.OpError{Op: "read", Net: "tcp", Source: e.local, Addr: e.remote, Err: err}
	}
	return n, err
}

func (e *end) Write(p []byte) (int, error) {
	e.in.mu.Lock()
	err := e.in.err
	e.in.mu.Unlock()
	if err != nil {
		return 0, &net.OpError{Op: "write", Net: "tcp", Source: e.local, Addr: e.remote, Err: err}
	}
	e.out.write(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unheard && e.unproven.IsZero() {
		e.unproven = time.Now()
	}
	return len(p), nil
}

// Unacknowledged implements the method that package netcontrol looks for.
func (e *end) Unacknowledged() bool {
	e.mu.Lock()
	lost := !e.unproven.IsZero() && time.Since(e.unproven) > resent
	e.mu.Unlock()
	return !e.proxied && (lost || e.out.unacknowledged())
}

// Close implements net.Conn. The other end gets what was written before.
func (e *end) Close() error {
	e.close.Do(func() {
		e.in.fail(net.ErrClosed)
		e.out.write(nil)
	})
	return nil
}

// reset breaks the connection for both ends, as far as they hear of it.
func (e *end) reset() {
	e.in.fail(syscall.ECONNRESET)
	e.out.fail(syscall.ECONNRESET)
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.deadline = t
	e.in.poke()
	return nil
}

func (e *end) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error { return nil } // no write waits
func (e *end) LocalAddr() net.Addr              { return e.local }
func (e *end) RemoteAddr() net.Addr             { return e.remote }
