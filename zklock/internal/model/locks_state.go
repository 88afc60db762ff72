package model

import (
	"cmp"
	"errors"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Locks is the model of the queue: clients queue for one name, wait, hold and release. Each
// server may lag behind what is committed. The model has no clocks. It takes from the model
// Leases that a session does not expire before its client has given it up.
//
// The queue nodes have versions: those of the transactions that committed, deleted and marked
// them. A client's server shows it the queue as of some version. A reply shows the client how
// far its server is; after a reconnect the next server is at least as far. An event shows
// nothing.
type Locks struct {
	Clients  int
	Modes    []queue.Mode // what a client may ask for
	Permits  int          // for the mode Permit
	Lag      int8         // how many transactions a server may lag behind
	Acquires int8         // how many acquisitions there may be; 0: any number

	Reconnects int8 // how often clients may reconnect
	Losses     int8 // how often clients may give up their sessions
	Breaks     int8 // how many waiting nodes an operator may delete
	Late       int8 // how many creates may be applied late, after their client has given up waiting for the reply
	Downgrades int8 // how often a writer may become a reader

	Without LockGuard // the guard that is taken out
}

// LockGuard is a part of the protocol that can be taken out of the model.
type LockGuard uint8

// The guards of the queue.
const (
	NoLockGuard     LockGuard = iota // none is taken out
	DecideByQueue                    // a waiter decides by the whole queue ahead, not by the absence of the one that it watched
	ReadArms                         // a watch is armed by a read that shows whether the node is still there
	OwnNodeRead                      // a waiter reads its own node before the grant
	OwnNodeWatched                   // a waiter watches its own node
	OneConnection                    // a waiter reads its own node on the connection that showed it no contender ahead
	EventsCombine                    // a waiter combines an event only with reads on the same connection: place.Sight
	LeaseFirst                       // a session does not expire before its client has given it up
	ContextsFirst                    // a client that gives up its session ends its contexts before its nodes go
	PermitsMarked                    // a waiter that gets a permit marks its node
	MarkFoundByRead                  // a waiter that reads a marked node lists the queue again
	DowngradeMarked                  // a writer that becomes a reader marks its node
	StraysRemoved                    // a client deletes nodes of its session that no place of it owns
)

const (
	maxClients = 4
	maxNodes   = 8
	never      = -1 // a version that has not come
)

// qnode is a queue node. Versions are counted back from the newest: that of the transaction
// committed last is 0. The nodes of a state are in the order of their creation.
type qnode struct {
	mode   queue.Mode // 0: there is no node here
	stale  bool       // its client has given up the session: it goes when the session expires
	born   int8
	died   int8
	marked int8
}

// The phases of a client.
const (
	idle       int8 = iota
	asked           // its create is under way
	recovering      // the reply to its create was lost
	waiting         // it looks at the queue, or waits for an event
	front           // it has seen no contender ahead that it has to wait for
	holding         // it holds, and its context is alive
	closing         // it has given up its session, and its context is alive: only if ContextsFirst is taken out
)

// qclient is a client with one session. Nodes are given by their bits, or by their index.
type qclient struct {
	phase int8
	mode  queue.Mode
	own   int8       // its node; never: it knows none
	twins uint8      // other nodes that its session has created
	late  queue.Mode // a create of it for that mode may still be applied; 0: none
	alone bool       // the reply to its create shows that no other contender is in the queue

	at   int8 // the version of its server
	seen int8 // the newest version that a reply has shown

	known   bool  // it knows the line ahead
	line    uint8 // that line
	readers uint8 // those of them that it has read as readers' by their marks
	armed   uint8 // those that it watches
	old     uint8 // those of armed that were marked when the watch was armed
	deaf    uint8 // those of armed that were gone by then: only if ReadArms is taken out
	here    bool  // its newest knowledge is from this connection
	byEvent bool  // and from an event
	mark    bool  // it is about to mark its node
}

// lockState is a state of Locks.
type lockState struct {
	clients [maxClients]qclient
	nodes   [maxNodes]qnode
	top     int8 // how many of the nodes are not newer than that of the latest exclusive holder
	behind  bool // a holder has a token that is not above that of an earlier one

	acquires, reconnects, losses, breaks, lates, downgrades int8
}

// Initial implements System.
func (m Locks) Initial() []lockState {
	var s lockState
	for i := range s.clients {
		s.clients[i].reset(m.Lag)
	}
	return []lockState{s}
}

// reset makes a client idle. The versions of its server do not matter then.
func (c *qclient) reset(lag int8) {
	*c = qclient{own: never, twins: c.twins, late: c.late, at: lag, seen: lag}
}

// Canonical implements System: all clients are interchangeable.
func (m Locks) Canonical(s lockState) lockState {
	slices.SortFunc(s.clients[:m.Clients], compareClients)
	return s
}

// compact takes out the nodes that no server shows and no client remembers.
func (s *lockState) compact(lag int8) {
	for i := maxNodes - 1; i >= 0; i-- {
		if s.nodes[i].mode != 0 && s.nodes[i].died == lag && !s.remembered(i) {
			s.forget(i)
		}
	}
}

func compareClients(a, b qclient) int {
	high, low := a.key()
	high2, low2 := b.key()
	return cmp.Or(cmp.Compare(high, high2), cmp.Compare(low, low2))
}

// key has all fields of a client.
func (c *qclient) key() (high, low uint64) {
	for i, b := range [...]bool{c.alone, c.known, c.here, c.byEvent, c.mark} {
		if b {
			high |= 1 << i
		}
	}
	for _, n := range [...]int8{c.phase, int8(c.mode), int8(c.late), c.own, c.at, c.seen} {
		high = high<<8 | uint64(uint8(n))
	}
	for _, set := range [...]uint8{c.twins, c.line, c.readers, c.armed, c.old, c.deaf} {
		low = low<<8 | uint64(set)
	}
	return high, low
}

// remembered reports whether a client refers to a node.
func (s *lockState) remembered(i int) bool {
	for _, c := range s.clients {
		if c.own == int8(i) || (c.twins|c.line|c.armed)&(1<<i) != 0 {
			return true
		}
	}
	return false
}

// forget takes a node out of the state.
func (s *lockState) forget(i int) {
	copy(s.nodes[i:], s.nodes[i+1:])
	s.nodes[maxNodes-1] = qnode{}
	if s.top > int8(i) {
		s.top--
	}
	below := uint8(1)<<i - 1
	cut := func(set uint8) uint8 { return set&below | set>>1&^below }
	for j := range s.clients {
		c := &s.clients[j]
		if c.own > int8(i) {
			c.own--
		}
		c.twins, c.line, c.readers, c.armed, c.old, c.deaf = cut(c.twins), cut(c.line), cut(c.readers), cut(c.armed), cut(c.old), cut(c.deaf)
	}
}

// commit makes all versions one older. A server that lags too far behind catches up by one.
func (s *lockState) commit(lag int8) {
	for i := range s.nodes {
		n := &s.nodes[i]
		n.born = min(n.born+1, lag)
		for _, v := range []*int8{&n.died, &n.marked} {
			if *v != never {
				*v = min(*v+1, lag)
			}
		}
		if n.mode == 0 {
			*n = qnode{}
		}
	}
	for i := range s.clients {
		c := &s.clients[i]
		c.at, c.seen = min(c.at+1, lag), min(c.seen+1, lag)
	}
}

// create commits a node, and returns its index; false if there is no room for it.
func (s *lockState) create(mode queue.Mode, lag int8) (int, bool) {
	for i := range s.nodes {
		if s.nodes[i].mode == 0 {
			s.commit(lag)
			s.nodes[i] = qnode{mode: mode, died: never, marked: never}
			return i, true
		}
	}
	return 0, false
}

// remove commits the deletion of nodes, in one transaction.
func (s *lockState) remove(nodes uint8, lag int8) {
	if nodes &= s.view(0); nodes == 0 {
		return
	}
	s.commit(lag)
	for i := range s.nodes {
		if nodes&(1<<i) != 0 {
			s.nodes[i].died = 0
		}
	}
}

// view returns the nodes that a server shows which has applied everything up to a version.
func (s *lockState) view(at int8) (nodes uint8) {
	for i, n := range s.nodes {
		if n.mode != 0 && n.born >= at && (n.died == never || n.died < at) {
			nodes |= 1 << i
		}
	}
	return nodes
}

// isMarked reports whether a server shows a node's mark.
func (s *lockState) isMarked(i int, at int8) bool {
	return s.nodes[i].marked != never && s.nodes[i].marked >= at
}

// decide calls queue.Decide for a node and those ahead of it. It returns the nodes to watch.
func (m Locks) decide(s *lockState, ahead, readers uint8, own int8, mode queue.Mode) (held bool, watch uint8) {
	var nodes [maxNodes]queue.Node
	var indexOf [maxNodes]int8
	q, at := nodes[:0], indexOf[:0]
	for i := range own {
		if ahead&(1<<i) != 0 {
			k := m.kind(s.nodes[i].mode)
			if readers&(1<<i) != 0 {
				k = queue.Effective(k, queue.Data{Mode: queue.Shared.String()})
			}
			q, at = append(q, queue.Node{Kind: k, Seq: int64(i)}), append(at, i)
		}
	}
	q = append(q, queue.Node{Kind: m.kind(mode), Seq: int64(own)})
	held, indexes := queue.Decide(q, len(q)-1)
	for _, i := range indexes {
		watch |= 1 << at[i]
	}
	return held, watch
}

func (m Locks) kind(mode queue.Mode) queue.Kind {
	if mode == queue.Permit {
		return queue.Kind{Mode: mode, Permits: m.Permits}
	}
	return queue.Kind{Mode: mode}
}

// Check implements System.
func (m Locks) Check(s lockState) error {
	writers, others := 0, 0
	for _, c := range s.clients[:m.Clients] {
		if c.phase != holding && c.phase != closing {
			continue
		}
		if c.mode == queue.Exclusive {
			writers++
		} else {
			others++
		}
	}
	switch {
	case writers > 1:
		return errors.New("two clients hold the exclusive lock")
	case writers == 1 && others > 0:
		return errors.New("a reader holds the lock next to a writer")
	case m.Permits > 0 && others > m.Permits:
		return errors.New("more clients have a permit than there are permits")
	case s.behind:
		return errors.New("a holder's token is not above that of an earlier exclusive holder")
	}
	return nil
}

// Settled implements System: no waiter still waits when it is its turn, and every node that blocks
// the queue is used by a client.
func (m Locks) Settled(s lockState) error {
	alive, used, readers := s.view(0), uint8(0), uint8(0)
	for _, c := range s.clients[:m.Clients] {
		if c.phase == holding && c.mode == queue.Shared {
			readers |= 1 << c.own // the writer that created the node has become a reader
		}
	}
	for _, c := range s.clients[:m.Clients] {
		if c.own != never {
			used |= 1 << c.own
		}
		if c.phase != idle && c.phase != recovering {
			used |= c.twins &^ (1<<c.own - 1) // those behind its node go when it goes
		}
		if c.phase != waiting {
			continue
		}
		if alive&(1<<c.own) == 0 {
			return errors.New("a client waits whose node is gone")
		}
		if held, _ := m.decide(&s, alive, readers, c.own, c.mode); held {
			return errors.New("a client waits although it is its turn")
		}
	}
	if alive&^used != 0 {
		return errors.New("a node stays in the queue that no client uses")
	}
	return nil
}
