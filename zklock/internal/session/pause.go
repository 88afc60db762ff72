package session

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// waits records that the heart waits until the instant due at most; zero: it does not wait.
// If it still waits much later, the process did not run for a while. Then a lease that has run
// out says nothing about the ensemble.
func (s heart) waits(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastPauseLocked()
	s.due, s.frozen = due, lease.Suspended()
}

// lastPauseLocked returns the last pause since the lease was renewed; "" if there was none. mu is held.
func (s *Session) lastPauseLocked() string {
	if !s.due.IsZero() {
		if text := pauseText(lease.Now().Sub(s.due), lease.Suspended()-s.frozen, s.lease.Least()/2); text != "" {
			s.pause = text
		}
	}
	return s.pause
}

// pauseText says that the heart is late, and that the machine was suspended while it waited. It
// returns "" if the heart is less late than least: then it was just busy.
func pauseText(late, suspended, least time.Duration) string {
	switch {
	case late < least:
		return ""
	case suspended > late/2:
		return fmt.Sprintf("the machine was suspended for %v", suspended.Truncate(100*time.Millisecond))
	}
	return fmt.Sprintf("this process did not run for at least %v (it was stopped, throttled or paused)", late.Truncate(100*time.Millisecond))
}
