package zkdriver

import (
	"fmt"
	"time"
)

// A server prolongs a session when a client attaches to it, also if the client is then refused.
// A client that goes on attaching with a wrong password, or with tickets that have expired,
// would keep its locks for ever, although it has lost them. So it stops when the leases are
// over, and the session expires a timeout after its last attach.

// refuse records that an attach to the session was not authenticated.
func (s *session) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// giveUp ends the session if the newest attach was refused and no lease depends on the session:
// it is being closed, or it has had no connection for its timeout. It reports whether the
// session is over.
func (s *session) giveUp() bool {
	s.mu.Lock()
	if s.id == 0 || s.refused == nil || s.given != nil || !s.closing && time.Since(s.lost) < s.timeout {
		over := s.expired
		s.mu.Unlock()
		return over
	}
	s.given = fmt.Errorf("given up, since the servers no longer authenticate it: %w", s.refused)
	id, given := s.id, s.given
	s.moveLocked()
	s.mu.Unlock()
	loggerOf(s.dialer.config.logger).Warn("zkdriver: session given up: its leases are over, and the servers refuse to authenticate it. It expires a session timeout after the last attempt",
		"session", fmt.Sprintf("%#x", uint64(id)), "error", given)
	s.expire()
	return true
}
