package zkdriver

import (
	"errors"
	"time"
)

// errStuck is why the watchdog drops a connection.
var errStuck = errors.New("server answers pings but not requests")

// watchdogTick is how often the watchdog looks: often enough that a stuck
// server is left well before the session is in danger.
func watchdogTick(timeout time.Duration) time.Duration {
	return max(timeout/24, 10*time.Millisecond)
}

// watchdog drops the connection when its oldest request has been unanswered
// for two thirds of the session timeout. The client does so only when it hears
// nothing at all, and a server may be well enough to answer pings only. Each
// request has its outcome after that time, if only an unknown one, and none
// that was abandoned is left behind for longer.
func (s *session) watchdog() {
	s.mu.Lock()
	c, up, timeout := s.conn, s.up, s.timeout
	s.mu.Unlock()
	if !up {
		return
	}
	if at, ok := c.oldest(); ok && time.Since(at) > timeout*2/3 {
		c.kill(errStuck)
	}
}
