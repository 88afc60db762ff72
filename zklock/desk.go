package zklock

import "github.com/zklock/go-zklock/zklock/internal/session"

// desk is a session as the places on it see it.
type desk struct {
	*session.Session
	*shared

	own ownWatches

	enqueued map[uint64]*contender // guarded by the session's mu; by serial: registered, not finished
	serial   uint64                // guarded by the session's mu
}

// newDesk makes the desk of a new session.
func newDesk(s *session.Session, c *shared) *desk {
	d := &desk{Session: s, shared: c, enqueued: make(map[uint64]*contender)}
	d.own.init(d)
	s.Spawn(d.own.run)
	return d
}

// deskOf returns a session's desk.
func deskOf(s *session.Session) *desk { return s.User.(*desk) }
