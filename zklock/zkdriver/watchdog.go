package zkdriver

import (
	"errors"
	"time"
)

// errStuck is the reason when the watchdog drops a connection.
var errStuck = errors.New("the server answers pings but not requests")

// watchdogTick is how often the watchdog checks. It is often enough to leave a stuck
// server well before the session is in danger.
func watchdogTick(timeout time.Duration) time.Duration {
	return max(timeout/24, 10*time.Millisecond)
}

// watchdog drops the connection when its oldest request has been unanswered for two
// thirds of the session timeout. The client does so only when it receives nothing at
// all, but a server may be able to answer only pings. After that time each request
// has its outcome, even if it is an unknown one, and no abandoned request stays
// longer.
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
