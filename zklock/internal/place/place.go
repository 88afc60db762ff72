package place

import (
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Place is an entry in the queue of one name, or of several names at once. Its
// contenders were created by one transaction, and so have one zxid. It belongs to one
// session, and is never looked for on another one.
//
// A place can be handed over from one holder of this process to the next, and outlives
// its holders. Its states are in place_state.go. Invariants:
//   - From newPlace to unregister it counts as its session's work.
//   - At most one hold has it at a time. Its successive holds have tokens with the same
//     zxid and growing turns.
type Place struct {
	Desk     *Desk
	nodes    []*contender // in the order of the request's wants
	Zxid     int64        // of the transaction that created them; 0 while that is not known
	replaces *Place       // the place whose nodes the transaction that creates this one deletes

	Granted  time.Time     // when it was first granted; zero if it was not
	recalled time.Duration // guarded by Desk.mu; how long after that it was recalled; 0: it was not

	nodeWatches []*session.Watched // watches on the nodes, armed before the grant; nil if it was granted at once

	watches        *ownWatches // of the session
	previous, next *Place      // guarded by Desk.mu; neighbours in the list of due places

	hold  session.Tenant // guarded by Desk.mu; the hold that has it now; nil if none has
	share *time.Timer    // guarded by Desk.mu; see ShareAt

	handovers uint32 // guarded by Desk.mu; how often it was handed over since its grant or its recall
	turn      uint32 // guarded by Desk.mu; the turn of the next hold
	shown     uint32 // guarded by Desk.mu; equal to turn if the nodes' data describe the newest hold
	life      life   // its state

	limitChecked bool // max_contenders need not be applied any more: see listQueue
	doubtful     bool // a create's outcome was unknown at some time: twins may appear
	others       bool // guarded by Desk.mu; another contender is, or may be, in the queue
	keepable     bool // it may be kept, as far as its creation shows; set before it is queued
	watched      bool // guarded by Desk.mu; the client watches for other contenders: see Keep
	listed       bool // guarded by Desk.mu; a guard has been given its queue

	due         bool        // guarded by Desk.mu; it is in the list of due places
	entrusted   bool        // guarded by Desk.mu; guards have had its nodes
	doubtfulTxn atomic.Bool // a Txn under it may still be applied

	revocation atomic.Pointer[string] // set under Desk.mu; why the holder is asked to give the lock back; nil: it is not
}

// newPlace registers a place for some wants, before its nodes are created. keepable says
// that it may be kept. newPlace returns false if the session is over.
func newPlace(desk *Desk, wants []Want, keepable bool) (*Place, bool) {
	nodes := make([]contender, len(wants))
	p := &Place{Desk: desk, watches: ownWatchesOf(desk.Session), nodes: make([]*contender, len(wants)), keepable: keepable, shown: 1}
	if !desk.Enter() {
		return nil, false
	}
	desk.mu.Lock()
	defer desk.mu.Unlock()
	for i, w := range wants {
		desk.serial++
		c := &nodes[i]
		c.dir, c.kind, c.guid = w.Path, w.Kind, queue.GUID{Session: desk.DS.ID(), Serial: desk.serial}
		if keepable {
			c.guid, p.shown = c.guid.Kept(), 0
		}
		desk.enqueued[c.guid.Serial] = c
		p.nodes[i] = c
	}
	return p, true
}

// lastNumber returns the largest of the sequence numbers of a place whose nodes exist.
func lastNumber(p *Place) (last int64) {
	for _, c := range p.nodes {
		n, _, _ := p.Desk.cfg.Dialect.Parse(c.node())
		last = max(last, n.Seq)
	}
	return last
}

// move is life.moveLocked for callers that do not hold the desk's mu.
func (p *Place) move(to state) bool {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	return p.life.moveLocked(to)
}

// mustRequeue reports whether the place was held before and is not reserved. Then it
// has to be replaced by a new place at the tail of the queue.
func (p *Place) mustRequeue() bool {
	return !p.Granted.IsZero() && p.life.state() != reserved
}

// Reserve keeps a spent place for the next goroutine of this process, which may hold it
// once the lease is long enough.
func (p *Place) Reserve() { p.move(reserved) }

// Node returns the name of the place's first node.
func (p *Place) Node() string { return p.nodes[0].node() }

// Size returns the number of names in whose queues the place is.
func (p *Place) Size() int { return len(p.nodes) }

// unregister ends the registration of a place whose nodes are gone, or were never
// created. To call it again does nothing.
func (p *Place) unregister() {
	desk := p.Desk
	desk.mu.Lock()
	_, registered := desk.enqueued[p.nodes[0].guid.Serial]
	for _, c := range p.nodes {
		delete(desk.enqueued, c.guid.Serial)
		desk.removePeerLocked(c)
	}
	p.giveUpLocked()
	desk.mu.Unlock()
	if !registered {
		return
	}
	if p.doubtful {
		for _, c := range p.nodes {
			desk.Spawn(func() { Znode{desk, c.dir}.sweep() })
		}
	}
	desk.Leave()
}

// giveUp moves the place to leaving: it will not be held again, and its nodes need not be
// watched any more.
func (p *Place) giveUp() {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	p.giveUpLocked()
}

func (p *Place) giveUpLocked() {
	p.life.moveLocked(leaving)
	if p.share != nil {
		p.share.Stop()
	}
	p.watches.removeLocked(p)
}

// Want is one name of a request, and the kind of lock that is wanted.
type Want struct {
	Name string
	Path string // of the lock's znode
	Kind queue.Kind
}
