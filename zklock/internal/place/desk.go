package place

import (
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Desk is a session with what the places on it need: what all places of the client share,
// the watches on the own nodes, and the contenders that are registered on the session.
type Desk struct {
	*session.Session
	*Shared

	ownWatches ownWatches
	freshNames freshNames

	enqueued map[uint64]*contender   // guarded by the session's Mu; the registered contenders, by serial number
	peers    map[string][]queue.Node // guarded by the session's Mu; those of them that waiters' lists have shown, by their locks' znodes, in the order of the queue
	lists    map[string]*listing     // guarded by the session's Mu; the newest list that is under way, by the lock's znode
	serial   uint64                  // guarded by the session's Mu; the newest serial number
}

// newDesk returns the desk of a new session, and starts the goroutine that watches own
// nodes.
func newDesk(s *session.Session, shared *Shared) *Desk {
	desk := &Desk{Session: s, Shared: shared, enqueued: make(map[uint64]*contender),
		peers: make(map[string][]queue.Node), lists: make(map[string]*listing)}
	desk.ownWatches.init(desk)
	desk.freshNames.init()
	s.Spawn(desk.ownWatches.run)
	return desk
}

// places returns the count of the session's places.
func (d *Desk) places() session.Places { return session.Places{Session: d.Session} }

// DeskOf returns a session's desk.
func DeskOf(s *session.Session) *Desk { return s.User.(*Desk) }
