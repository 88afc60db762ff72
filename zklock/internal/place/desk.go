package place

import (
	"cmp"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Desk is a session with what the places on it need: what all places of the client share, and
// the contenders that are registered on the session.
type Desk struct {
	*session.Session
	*Shared

	freshNames freshNames

	// mu guards the state of all places, and what follows. A goroutine that holds it makes no
	// request and does not wait. Session.Hold locks the session's mutex first, and then runs a
	// step that locks mu.
	mu       sync.Mutex
	enqueued map[uint64]*contender   // guarded by mu; the registered contenders, by serial number
	peers    map[string][]queue.Node // guarded by mu; those of them that waiters' lists have shown, by their locks' znodes, in the order of the queue
	lists    map[string]*listing     // guarded by mu; by the lock's znode, while a list is under way: the one that follows it, nil if no waiter needs it
	serial   uint64                  // guarded by mu; the newest serial number
}

// newDesk returns the desk of a new session.
func newDesk(s *session.Session, shared *Shared) *Desk {
	desk := &Desk{Session: s, Shared: shared, enqueued: make(map[uint64]*contender),
		peers: make(map[string][]queue.Node), lists: make(map[string]*listing)}
	desk.freshNames.shares = make(chan struct{})
	return desk
}

// contender is one queue node of ours, from before its create is sent until the node is
// certainly gone.
//
// Invariants:
//   - It is registered with its desk from before its create is sent until its node is
//     gone.
//   - While path is empty, the outcome of its create is open. Once set, it never
//     changes. A second node with the same GUID is a late twin: a create that was given
//     up as lost was applied after all. A twin is deleted wherever it is seen.
type contender struct {
	dir  string // the lock's znode
	guid queue.GUID
	kind queue.Kind // guarded by the desk's mu once the place is queued
	path string     // guarded by the desk's mu until it is known; the node's path; "" while it is not known
}

// node returns the node's name below dir; "" while that is not known. It needs what a read of
// path needs.
func (c *contender) node() string {
	if c.path == "" {
		return ""
	}
	return c.path[len(c.dir)+1:]
}

// findPeer finds a node, or the place for it, in an element of Desk.peers. Two of those may have
// the same sequence number, if the name's znode was created again and its numbers began again.
func findPeer(peers []queue.Node, o queue.Node) (int, bool) {
	return slices.BinarySearchFunc(peers, o, func(a, b queue.Node) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.GUID.Serial, b.GUID.Serial))
	})
}

// addPeerLocked adds a contender with the listed node o to Desk.peers, unless it is there, and
// returns the peers from there on. The desk's mu is held.
func (d *Desk) addPeerLocked(c *contender, o queue.Node) []queue.Node {
	peers := d.peers[c.dir]
	i, found := findPeer(peers, o)
	if !found {
		o.Name = c.node() // not another copy of it
		peers = slices.Insert(peers, i, o)
		d.peers[c.dir] = peers
	}
	return peers[i:]
}

// removePeerLocked takes an unregistered contender out of Desk.peers, if it is there. The
// desk's mu is held.
func (d *Desk) removePeerLocked(c *contender) {
	peers, ok := d.peers[c.dir]
	if !ok {
		return
	}
	o, _, _ := d.cfg.Dialect.Parse(c.node())
	switch i, found := findPeer(peers, o); {
	case !found:
		return
	case i == 0: // as a rule: the first in the queue leaves first
		peers[0] = queue.Node{}
		peers = peers[1:]
	default:
		peers = slices.Delete(peers, i, i+1)
	}
	if d.peers[c.dir] = peers; len(peers) == 0 {
		delete(d.peers, c.dir)
	}
}
