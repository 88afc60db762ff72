package place

import (
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// contender is one queue node of ours, from before its create is sent until it
// is surely gone.
//
// Invariants:
//   - It is registered with its desk before its create is sent and until its
//     node is gone.
//   - While node is empty the outcome of its create is open. Once set, node
//     never changes; a second node with the same GUID is a late twin, a create
//     that was given up as lost and was applied after all, and is deleted
//     wherever it is seen.
type contender struct {
	dir  string // the lock's znode
	guid queue.GUID
	kind queue.Kind // guarded by the session's mu once the place is queued
	node string     // guarded by the session's mu; its name below dir, the end of at
	at   string     // guarded by the session's mu; the node's path
}

// path returns the node's path; it must be known.
func (c *contender) path() string { return c.at }

// settleLocked says what the node is. The session's mu is held.
func (c *contender) settleLocked(path string) { c.at, c.node = path, path[len(c.dir)+1:] }

// Place is a place in the queue of one name, or of several at once: contenders
// created by one transaction, and so with one zxid. It belongs to one session
// and is never looked for under another.
//
// It passes from holder to holder inside the process, and outlives them. Its states are
// in place_state.go. Invariants:
//   - From newPlace to forget it counts as its session's work.
//   - At most one hold has it at a time, and the tokens of successive holds grow
//     by turn.
type Place struct {
	Desk     *Desk
	nodes    []*contender // in the order of the request's wants
	Zxid     int64        // of the transaction that created them; 0 while open
	replaces *Place       // given up by the transaction that creates this one

	Granted   time.Time // when it first became a hold
	handovers int       // since it was granted

	own []*session.Watched // on the nodes, as seen right before the grant; nil if that was at once

	before, after *Place // guarded by Desk.own.mu; neighbours in the list of those due

	hold  session.Tenant // guarded by Desk.Mu; who has it now
	share *time.Timer    // guarded by Desk.Mu; see ShareAt

	turn uint32 // guarded by Desk.Mu; of the next hold
	life life   // its state

	counted  bool // max_contenders was applied when it was created
	doubtful bool // a create's outcome was unknown at some time: twins may show up
	Others   bool // another contender is, or may be, in the queue

	due         bool        // guarded by Desk.own.mu; it is in the list of those due
	doubtfulTxn atomic.Bool // a Txn under it may still be applied
}

// newPlace makes a place for some wants, before its nodes are created, or returns
// false if the session is over.
func newPlace(s *Desk, wants []Want) (*Place, bool) {
	nodes := make([]contender, len(wants))
	p := &Place{Desk: s, nodes: make([]*contender, len(wants))}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Over != nil {
		return nil, false
	}
	s.Work++
	if s.Work == 1 {
		session.Poke(s.Rouse) // heartbeats are due sooner now
	}
	for i, w := range wants {
		s.serial++
		c := &nodes[i]
		c.dir, c.kind, c.guid = w.Path, w.Kind, queue.GUID{Session: s.DS.ID(), Serial: s.serial}
		s.enqueued[s.serial] = c
		p.nodes[i] = c
	}
	return p, true
}

// move is life.moveLocked without the mutex.
func (p *Place) move(to state) bool {
	p.Desk.Mu.Lock()
	defer p.Desk.Mu.Unlock()
	return p.life.moveLocked(to)
}

// worn reports whether the place was held before and is not reserved: then it goes to the
// tail of the queue, replaced by a new one.
func (p *Place) worn() bool {
	return !p.Granted.IsZero() && p.life.is() != reserved
}

// Reserve has a place that is spent ready for the next one in this process.
func (p *Place) Reserve() { p.move(reserved) }

// Readers reports whether the place's node grants no more than a shared hold.
func (p *Place) Readers() bool {
	p.Desk.Mu.Lock()
	defer p.Desk.Mu.Unlock()
	return p.nodes[0].kind.Mode == queue.Shared
}

// Node is the name of the place's first node.
func (p *Place) Node() string { return p.nodes[0].node }

// Size is how many names it is in the queue of.
func (p *Place) Size() int { return len(p.nodes) }

// forget forgets a place whose nodes are gone, or never were. Calling it again
// does nothing.
func (p *Place) forget() {
	s := p.Desk
	s.Mu.Lock()
	_, there := s.enqueued[p.nodes[0].guid.Serial]
	for _, c := range p.nodes {
		delete(s.enqueued, c.guid.Serial)
	}
	sweep := there && p.doubtful
	idle := there && !sweep && s.LeaveLocked()
	s.Mu.Unlock()
	p.giveUp()
	if idle {
		s.Pool.Retire(s.Session)
	}
	if sweep {
		for _, c := range p.nodes {
			s.Spawn(func() { Znode{s, c.dir}.sweep() })
		}
		s.Leave()
	}
}

// giveUp says that the place will not be held again: nobody needs to watch its
// nodes any more.
func (p *Place) giveUp() {
	p.Desk.Mu.Lock()
	p.life.moveLocked(leaving)
	if p.share != nil {
		p.share.Stop()
	}
	p.Desk.Mu.Unlock()
	p.Desk.own.remove(p)
}
