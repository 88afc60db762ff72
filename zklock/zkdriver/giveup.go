package zkdriver

import (
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// A server prolongs a session when a client attaches to it, also if the client is then not
// authenticated. A client that goes on attaching with a wrong password, or with tickets that have
// expired, would keep its locks for ever, although it has lost them. So it stops when the leases are
// over, and the session expires a timeout after its last attach.

// attachFailed records that the newest attach to the session was not authenticated: the server
// refused, or the connection broke in the exchange. A connection that is established clears that.
func (s *session) attachFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attachErr = err
}

// giveUp ends the session if its newest attach was not authenticated, and it has had no connection
// for its timeout, so no lease depends on it. While the session is being closed, it also ends when
// every server has refused; before that, another server may still confirm the close. giveUp reports
// whether the session is over.
func (s *session) giveUp() bool {
	refused := s.dialer.refused()
	s.mu.Lock()
	over := time.Since(s.lost) >= s.timeout || s.closing && refused
	if s.id == 0 || s.attachErr == nil || s.given != nil || !over {
		expired := s.expired
		s.mu.Unlock()
		return expired
	}
	s.given = fmt.Errorf("given up, since no server authenticates it: %w", s.attachErr)
	id, given := s.id, s.given
	s.moveLocked()
	s.mu.Unlock()
	loggerOf(s.dialer.config.logger).Warn("zkdriver: session given up: it has no leases, and no server authenticates it. It expires a session timeout after the last attempt",
		"session", fmt.Sprintf("%#x", uint64(id)), "error", given)
	s.expire()
	return true
}

// refused reports whether the newest attempt on each server since the last handshake has failed
// with a refusal of the identity. Another failure may pass.
func (d *dialer) refused() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.turns.all() {
		if !errors.Is(d.errs[s].err, driver.ErrAuthFailed) {
			return false
		}
	}
	return true
}
