package memdriver

// Freeze stops a session's client as SIGSTOP stops a process, until thaw is called.
// The client sends nothing, not even a ping, receives nothing and notices nothing,
// and its connection stays. Calls of the session's methods wait, but their contexts can end.
// Everything that arrived during the freeze is waiting for the client at the thaw, including
// the end of the session. thaw may be called more than once.
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

// thaw lets the client go on. The client reads what has arrived before it checks how
// long that took, like a process that finds its socket readable.
func (s *session) thaw() {
	e := s.e
	broken := s.broken
	s.frozen, s.broken = false, false
	e.cancel(s.retry)
	c := s.conn
	switch {
	case s.over:
	case s.lapsed:
		s.lapse()
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
