package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// A session that the pool has replaced ends with its last place, and at once if it has none. No call of
// the pool is needed for that, and a release locks no mutex of the pool.
func TestRetiredSessionEndsWithItsLastPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		isGone := func(s *Session) bool {
			select {
			case <-s.gone:
				return true
			default:
				return false
			}
		}
		s := busySession(&onConn{generation: 1}, 5*time.Second)
		s.Enter(0, 0)
		s.retire()
		s.Leave(0, false)
		if s.IsOver() || s.Enter(0, 0) != nil {
			t.Error("a session that is retiring ends, or takes no further place, while it has a place")
		}
		s.Leave(0, false)
		if s.Leave(0, false); s.Cause() != errs.ErrSessionEnded || !isGone(s) || s.common.Lost.Load() != 0 {
			t.Errorf("without places it has ended with %v, its handles have: %t, and counts %d losses; want %v", s.Cause(), isGone(s), s.common.Lost.Load(), errs.ErrSessionEnded)
		}
		idle := busySession(&onConn{generation: 1}, 5*time.Second)
		if idle.Leave(0, false); idle.IsOver() {
			t.Error("a session that is not retiring ends with its last place")
		}
		if idle.retire(); !isGone(idle) {
			t.Error("an idle session does not end when it is replaced")
		}
		s.announceEnd() // as the pool does
		idle.announceEnd()
	})
}
