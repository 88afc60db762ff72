package session

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Healthy returns nil if the ensemble has answered on one of the pool's sessions within that
// session's timeout, and no lease that counts there has run out. It makes no request. Without a
// session it starts to open one, and does not wait for it.
func (p *Pool) Healthy() error {
	all := p.All()
	for _, s := range all {
		if isProven(s) {
			return nil
		}
	}
	for _, s := range all {
		if !s.IsOver() {
			return fmt.Errorf("%w: the ensemble has not answered for a session timeout", errs.ErrUnavailable)
		}
	}
	s, o, err := p.look(p.slot(""))
	switch {
	case err != nil:
		return err
	case s != nil: // it has just been opened
		return nil
	}
	if why := p.diagnose(o); why != nil {
		return fmt.Errorf("%w: none has been opened yet: %w", errs.ErrUnavailable, why)
	}
	return fmt.Errorf("%w: none has been opened yet", errs.ErrUnavailable)
}

// isProven reports whether a session has had an answer within its timeout, and its lease has
// not run out while it counts. A session that was opened just now has had answers.
func isProven(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.born
	if s.heard.After(last) {
		last = s.heard
	}
	return s.over == nil && lease.Now().Sub(last) < s.Timeout && (!s.counting || s.leftLocked() > 0)
}
