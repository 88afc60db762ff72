package place

import "github.com/zklock/go-zklock/zklock/internal/session"

// Desk is a session as the places on it see it.
type Desk struct {
	*session.Session
	*Shared

	own ownWatches

	enqueued map[uint64]*contender // guarded by the session's mu; by serial: registered, not finished
	serial   uint64                // guarded by the session's mu
}

// newDesk makes the desk of a new session.
func newDesk(s *session.Session, c *Shared) *Desk {
	d := &Desk{Session: s, Shared: c, enqueued: make(map[uint64]*contender)}
	d.own.init(d)
	s.Spawn(d.own.run)
	return d
}

// DeskOf returns a session's desk.
func DeskOf(s *session.Session) *Desk { return s.User.(*Desk) }
