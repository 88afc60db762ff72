package place

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Place is an entry in the queue of one name, or of several names at once. Its
// contenders were created by one transaction, and so have one zxid. It belongs to one
// session, and is never looked for on another one.
//
// A place can be handed over from one holder of this process to the next, and outlives
// its holders. Its states are in place_grant.go. Invariants:
//   - From newPlace to unregister it is its session's work.
//   - At most one hold has it at a time. Its successive holds have tokens with the same
//     zxid and growing turns.
type Place struct {
	Desk     *Desk
	nodes    []*ownNode // in the order of the request's wants
	Zxid     int64      // of the transaction that created them; 0 while that is not known
	progress progress   // its state

	bytes int // guarded by Desk.mu; what its nodes take in the transaction that ends the session; 0 once they are not counted

	limitChecked bool // no list needs to apply max_contenders: there is no limit, or it was applied
	resting      bool // it waits, or is to be removed, and needs no lease; the goroutine that has the place sets it: see Attempt.rest
	doubtful     bool // a create's outcome was unknown at some time: twins may appear
	guarded      bool // guarded by Desk.mu; guards have had its nodes

	unmarked []byte   // the data of a permit's node until it is granted
	marks    bool     // that node has to be marked when it is granted
	lowered  bool     // the last look at a permit's queue has shown one ahead that asks for fewer permits
	opening  creating // what creates its nodes, while no attempt has the place; nil: they exist, or an attempt creates them

	heard atomic.Uint64 // the connection of the event that may have granted it; 0 if a reply did, or has come since: see Read

	watches     *WatchedDesk       // of the session
	nodeWatches []*session.Watched // watches on the nodes, armed before the grant; nil if it was granted at once

	handoverState // its hand-over, from one hold to the next
	keeping       // whether the client may keep it between two holds
}

// creating is a creation that no attempt has.
type creating interface {
	write() *session.Write // the newest, which is not known to be answered
	abandon()              // ends it: the nodes are not created, or deleted again, and so is the place that they would replace
}

// Session returns the session that the place is on.
func (p *Place) Session() *WatchedDesk { return p.watches }

// newPlace registers a place for some wants, before its nodes are created. keepable says
// that it may be kept. replaces, if not nil, is the place whose nodes the same transaction deletes. newPlace
// returns errs.ErrSessionOver, or errs.ErrNoRoom, if the session takes no such place.
func newPlace(s *WatchedDesk, wants []Want, keepable bool, replaces *Place) (*Place, error) {
	nodes := make([]ownNode, len(wants))
	desk := s.Desk
	p := &Place{Desk: desk, nodes: make([]*ownNode, len(wants))}
	p.watches, p.keepable, p.dataTurn = s, keepable, 1
	if replaces == nil {
		p.bytes = Ephemerals(desk.cfg.Dialect, wants)
	}
	if err := desk.Session.Enter(p.bytes, 0); err != nil {
		return nil, err
	}
	desk.mu.Lock()
	defer desk.mu.Unlock()
	if replaces != nil {
		p.bytes, replaces.bytes = replaces.bytes, 0
	}
	for i, w := range wants {
		desk.serial++
		c := &nodes[i]
		c.dir, c.kind, c.guid = w.Path, w.Kind, queue.GUID{Session: desk.Session.ID(), Serial: desk.serial}
		if w.Kind.Permits > 0 && !replaces.mayCount() {
			c.guid = c.guid.Looking()
		}
		if keepable {
			c.guid, p.dataTurn = c.guid.Keepable(), 0
		}
		desk.enqueued[c.guid.Serial] = c
		p.nodes[i] = c
	}
	return p, nil
}

// mayCount reports whether the count of children may grant the place for a permit that replaces this one, if no more contenders are
// in the queue than it asks for. This one was granted, so no more hold than before. What is ahead and holds has a permit, too: what
// was ahead of this one wanted one when this one was granted; and what came after that, and wants something else, finds
// either of the two in each list, and gives way. One ahead that asks for fewer permits counts the new one as ahead, since its
// node does not say that it is granted by a look: see decidePermit.
//
// Where the last look showed one that asks for fewer, the new one is granted by a look, in its turn: for the order, and not
// for the number of holders. Else that one has come since, and does not wait for long: a place is replaced while its client
// has let through the gate as many as hold, and one more makes the count too large.
//
// Where the requests at the gate ask for different numbers, fewer may be let through, so there the new one looks, too: LooksNext.
func (p *Place) mayCount() bool { return p != nil && !p.Granted.IsZero() && !p.lowered }

// LooksNext has the place of a permit that replaces this one be granted by a look at the queue. No other goroutine has this place.
func (p *Place) LooksNext() { p.lowered = true }

// Ephemerals returns how many bytes the nodes of some wants take in the transaction that ends their session.
func Ephemerals(d *queue.Dialect, wants []Want) (bytes int) {
	for i := range wants {
		bytes += session.EphemeralSize(len(wants[i].Path) + 1 + d.NodeLength(wants[i].Kind))
	}
	return bytes
}

// lastNumber returns the largest of the sequence numbers of a place whose nodes exist.
func (p *Place) lastNumber() (last int64) {
	for _, c := range p.nodes {
		n, _, _ := p.Desk.cfg.Dialect.Parse(c.node())
		last = max(last, n.Seq)
	}
	return last
}

// move is progress.moveLocked for callers that do not hold the desk's mu.
func (p *Place) move(to placeState) bool {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	return p.progress.moveLocked(to)
}

// Reserve reserves a spent place for the next goroutine of this process, which may hold it
// once the lease is long enough.
func (p *Place) Reserve() { p.move(reserved) }

// Node returns the name of the place's first node.
func (p *Place) Node() string { return p.nodes[0].node() }

// has reports whether a node of that name is one of the place's, which are known. A nil place has none.
func (p *Place) has(node string) bool {
	return p != nil && slices.ContainsFunc(p.nodes, func(c *ownNode) bool { return c.node() == node })
}

// dirs returns the paths of the znodes that the place's nodes are below.
func (p *Place) dirs() []string {
	paths := make([]string, len(p.nodes))
	for i, c := range p.nodes {
		paths[i] = c.dir
	}
	return paths
}

// Size returns the number of names in whose queues the place is.
func (p *Place) Size() int { return len(p.nodes) }

// unregister ends the registration of a place whose nodes are gone, or were never
// created. A second call does nothing.
func (p *Place) unregister() {
	desk := p.Desk
	desk.mu.Lock()
	_, registered := desk.enqueued[p.nodes[0].guid.Serial]
	for _, c := range p.nodes {
		delete(desk.enqueued, c.guid.Serial)
		desk.removePeerLocked(c)
	}
	p.giveUpLocked()
	bytes := p.bytes
	p.bytes = 0
	desk.mu.Unlock()
	if !registered {
		return
	}
	if p.doubtful {
		desk.doubt(p.dirs(), true)
	}
	desk.Session.Leave(bytes, p.resting)
}

// Want is one name of a request, and the kind of lock that is wanted.
type Want struct {
	Name string
	Path string // of the lock's znode
	Kind queue.Kind
}

// Settle implements session.Newcomers. Zxid stays 0 if the driver does not report it and no parent was
// set.
func (p *Place) Settle(w *session.Write) (children []int32) {
	children = make([]int32, 0, len(p.nodes))
	for i := range w.Ops {
		if w.Ops[i].Kind == driver.OpSet {
			version := w.Results[i].Stat.Version
			p.Desk.parents.known(w.Ops[i].Path, func(known *parent) { known.version = max(known.version, version) })
		}
	}
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	for i := range w.Ops {
		switch w.Ops[i].Kind {
		case driver.OpCreate:
			if w.Ops[i].Mode == driver.Container {
				continue // a parent
			}
			p.nodes[len(children)].path = w.Results[i].Path
			children = append(children, -1)
			p.Zxid = w.Results[i].Zxid
		case driver.OpSet:
			stat := &w.Results[i].Stat
			children[len(children)-1] = stat.NumChildren
			p.Zxid = stat.Mzxid
		}
	}
	return children
}

// MayJoin reports whether another reader may join the readers that hold a place: the lease
// is long enough, the place is not revoked, and the time within has not passed since the
// limits of hand-over count.
func (p *Place) MayJoin(within time.Duration) bool {
	return p.Desk.Session.Leased() && p.Handover().MayJoin(within)
}

// Handover returns what the client knows of a place at the moment.
func (p *Place) Handover() Handover {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	return p.handoverLocked()
}

func (p *Place) handoverLocked() Handover {
	s := Handover{
		Mode:      p.nodes[0].kind.Mode,
		Doubtful:  p.doubtfulTxn.Load(),
		Revoked:   p.isRevoked(),
		Keepable:  p.keepable,
		Open:      p.opened && !p.others,
		Others:    p.others,
		Turn:      p.turn,
		Handovers: int(p.handovers),
	}
	if !s.Open { // else no limit counts, and the clock need not be read
		s.Limited = time.Since(p.Granted) - p.recalled
	}
	return s
}
