package place

import (
	"sync"

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

	// mu guards the state of all places, and what follows. Nothing that is done while it is held
	// waits, makes a request or calls the session. Where both are locked, the session's mutex,
	// which Session.Hold locks, is locked first.
	mu       sync.Mutex
	enqueued map[uint64]*contender   // guarded by mu; the registered contenders, by serial number
	peers    map[string][]queue.Node // guarded by mu; those of them that waiters' lists have shown, by their locks' znodes, in the order of the queue
	lists    map[string]*listing     // guarded by mu; the newest list that is under way, by the lock's znode
	serial   uint64                  // guarded by mu; the newest serial number
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

// DeskOf returns a session's desk.
func DeskOf(s *session.Session) *Desk { return s.User.(*Desk) }
