package zkdriver

import (
	"errors"
	"time"
)

// errStuck is the reason when the watchdog drops a connection.
var errStuck = errors.New("the server answers pings but not requests")

// watchdog drops the connection when its oldest request has been unanswered for two
// thirds of the session timeout. The client does so only when it receives nothing at
// all, but a server may be able to answer only pings. After that time each request
// has its outcome, even if it is an unknown one, and no abandoned request stays
// longer. Long before that, the session asks whether the server is silent: see doubt.
//
// It returns when it has to look again: no request can be due before.
func (s *session) watchdog() (next time.Duration) {
	s.mu.Lock()
	c, up, timeout := s.conn, s.up, s.timeout
	s.mu.Unlock()
	wait := max(s.limit()/2, 10*time.Millisecond)
	if !up {
		return wait
	}
	at, ok := c.oldest()
	if !ok {
		return wait
	}
	if time.Since(at) > timeout*2/3 {
		c.kill(errStuck)
		return wait
	}
	since, _ := c.silent()
	switch quiet := time.Since(since); {
	case quiet < wait:
		return wait - quiet
	case !s.doubting.Swap(true):
		s.dialer.watching.Go(func() { s.doubt(c, since) })
	}
	return wait
}
