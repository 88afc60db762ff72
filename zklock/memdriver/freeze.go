package memdriver

// Freeze stops a session's client as SIGSTOP stops a process, until thaw is
// called: it sends nothing, not even a ping, takes nothing in, notices nothing,
// and its connection stays. Calls of its methods wait; their contexts go on to
// count. What has come meanwhile is waiting for it at the thaw, the end of the
// session included. thaw may be called more than once.
func (e *Ensemble) Freeze(sessionID int64) (thaw func()) {
	e.enter()
	defer e.leave()
	s := e.sessions[sessionID]
	if s == nil || s.frozen {
		return func() {}
	}
	s.freeze()
	return func() {
		e.enter()
		defer e.leave()
		if s.frozen {
			s.thaw()
		}
	}
}

func (s *session) freeze() {
	e := s.e
	s.frozen = true
	e.cancel(s.ping)
	e.cancel(s.limit)
	e.cancel(s.retry)
	s.retry = nil
	if c := s.conn; c != nil {
		e.cancel(c.deadline)
		c.down.pause()
	}
}

// thaw lets the client go on. It reads what has arrived before it looks at how
// long that took, as a process does that finds its socket readable.
func (s *session) thaw() {
	e := s.e
	broken := s.broken
	s.frozen, s.broken = false, false
	e.cancel(s.retry)
	c := s.conn
	switch {
	case s.over:
	case broken:
		s.disconnected(c)
	case c == nil:
		s.retry = e.after(firstPause, s.dial)
	case !s.ready:
		c.deadline = e.after(firstPause, func() { s.giveUp(c) })
		c.down.resume()
	default:
		s.ping = e.after(0, s.sendPing)
		s.limit = e.after(firstPause, s.checkSilence)
		c.down.resume()
		queue := s.queue
		s.queue = nil
		for _, r := range queue {
			s.send(r)
		}
	}
}
