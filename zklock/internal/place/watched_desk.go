package place

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// WatchedDesk is a desk with watches on its places, as the pool has it: what Acquire needs of a session. A pool makes one of
// each session: see Serve. It watches the nodes of granted places, so that a holder learns when another
// client, an operator's for example, deletes its node. The lease alone would not show that. It also
// watches the queues of places that are or may be kept, for other contenders.
//
// A place that has waited long already has watches on its nodes, so guards get them at once. Any
// other one gets watches a sixth of the session timeout after its grant, whichever goroutine holds
// it by then: a watch on every lock that is held briefly would halve the throughput. A holder that wants to learn of a revocation gets them at once: see Attend.
// At the same time after each grant, lookAfter looks after what others read of the place.
//
// Invariants:
//   - A granted place is among the due ones until it is due, or until its end was noticed.
//   - A guard in withRoom has room and has not ended: the guard decides under the desk's mu
//     whether it has room and whether it ends.
type WatchedDesk struct {
	*Desk
	added chan struct{} // cap 1: wakes run for a new place, if its timer is not set for that

	// The desk's mu guards the following.
	due      []*Place // in the order of their grants; some of them may be ending
	room     []*Place // empty, with the room that due had when it last grew
	armed    bool     // run's timer is set, and fires no later than the first of due is due
	withRoom []*guard // guards that can take more nodes
}

const minSweep = 64

// Underlying returns the pool's session: see session.Member.
func (own *WatchedDesk) Underlying() *session.Session { return own.Session }

// Serve prepares a pool so that its sessions can have places. inUse reports whether this client
// holds, waits for or keeps the name with a path.
func Serve(sh *Shared, pool *session.Pool[*WatchedDesk], inUse func(path string) bool) {
	sh.inUse = inUse
	sh.straysIn = func(q []queue.Node) []int { return straysIn(pool.All(), q) }
	pool.Prepare = sh.findRoot
	pool.Attend = func(s *session.Session) *WatchedDesk {
		desk := &Desk{Session: s, Shared: sh, enqueued: make(map[uint64]*ownNode),
			peers: make(map[string][]queue.Node), lists: make(map[string]*sharedList), reads: make(chan struct{}, maxReads)}
		desk.freshNames.shares, desk.doubts.added = make(chan struct{}), make(chan struct{}, 1)
		s.Remains(desk.remains)
		own := &WatchedDesk{Desk: desk, added: make(chan struct{}, 1)}
		s.Spawn(own.run)
		s.Spawn(desk.reap)
		return own
	}
}

// straysIn returns the indexes of the nodes that one of these sessions has made, and disowns.
func straysIn(sessions []*WatchedDesk, q []queue.Node) (at []int) {
	for i := range q {
		for _, s := range sessions {
			if s.Session.ID() == q[i].GUID.Session && s.disowns(q[i]) {
				at = append(at, i)
			}
		}
	}
	return at
}

// delay is how long after its grant a place is due.
func (own *WatchedDesk) delay() time.Duration { return own.Session.Timeout() / 6 }

// addLocked takes over a place that has just been granted for the first time.
func (own *WatchedDesk) addLocked(p *Place) {
	if len(own.due) == cap(own.due) { // make room, for as many as remain at least, so that this costs little on average
		own.due = slices.DeleteFunc(own.due, func(p *Place) bool { return p.progress.ending() })
		own.due = slices.Grow(own.due, max(minSweep, len(own.due)))
		own.room = own.due[:0]
	}
	if own.due = append(own.due, p); !own.armed {
		session.Poke(own.added)
	}
}

// next takes out a place that is due. If there is none, it returns nil and the time until
// the next one is due; a long time if there are no places.
func (own *WatchedDesk) next() (*Place, time.Duration) {
	own.mu.Lock()
	defer own.mu.Unlock()
	for len(own.due) > 0 {
		p := own.due[0]
		wait, ending := time.Until(p.Granted.Add(own.delay())), p.progress.ending()
		if own.armed = wait > 0 && !ending; own.armed {
			return nil, wait
		}
		own.due[0], own.due = nil, own.due[1:]
		if !ending {
			return p, 0
		}
	}
	if cap(own.room) > 2*minSweep {
		own.room = nil // there may never be as many again
	}
	own.due, own.armed = own.room, false
	return nil, time.Hour
}

// run gives the nodes of due places to guards, and looks after the places, until the
// session ends.
func (own *WatchedDesk) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, wait := own.next()
		if p != nil {
			p.guardNodes()
			p.lookAfter()
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-own.added:
		case <-own.Session.Context().Done():
			return
		}
	}
}

// guardNodes gives the nodes of a granted place to guards, once.
func (p *Place) guardNodes() {
	p.Desk.mu.Lock()
	before := p.guarded
	p.guarded = true
	p.Desk.mu.Unlock()
	if before {
		return
	}
	for i := range p.nodes {
		n := guarded{place: p, index: i}
		if p.nodeWatches != nil {
			n.shared, n.event, n.gen = p.nodeWatches[i], p.nodeWatches[i].Event, p.nodeWatches[i].Gen
			p.noteRevocation(n.shared.Node.Data)
		}
		p.watches.give(n)
	}
}

// lookAfter looks after what others read of a place that was handed over, or may be kept. The
// first has its holder described. The queue of the second gets the watch that Keep would arm
// later, so that its holder is described when another contender arrives.
func (p *Place) lookAfter() {
	p.Desk.mu.Lock()
	h, held := p.hold.(Holder) // else it is the client's own, for a kept name, or there is none
	keepable := p.keepable && !p.others
	act := held && p.dataTurn != p.turn && !(keepable && p.queueWatched)
	p.queueWatched = p.queueWatched || act && keepable
	p.Desk.mu.Unlock()
	switch {
	case act && keepable:
		p.watches.give(guarded{place: p, onRecall: h.RecallHandler()})
	case act:
		p.Describe(nil)
	}
}

// give gives a node to a guard that has room, or to a new one.
func (own *WatchedDesk) give(n guarded) {
	own.mu.Lock()
	fresh := len(own.withRoom) == 0
	if fresh {
		own.withRoom = append(own.withRoom, &guard{watches: own, wake: make(chan struct{}, 1)})
	}
	last := len(own.withRoom) - 1
	g := own.withRoom[last]
	g.added = append(g.added, n)
	if g.count++; g.count == maxGuarded {
		own.withRoom = own.withRoom[:last]
	}
	own.mu.Unlock()
	if fresh {
		own.Session.Spawn(g.run)
	} else {
		session.Poke(g.wake)
	}
}

// maxGuarded is how many nodes one guard watches. A goroutine for each node would
// need about four times the memory of the node's lock. With more nodes for each
// goroutine, each event would cost more.
const maxGuarded = 64

// guard is a goroutine that watches nodes of this client until their places are given up.
// It reports to a node's place that another client has deleted the node, or that the node's data
// ask the holder to give the lock back. For a place that is or may be kept it also watches the
// queue: if another contender may be there, the guard recalls the place. The guard ends when it has no nodes left,
// or when the session ends.
type guard struct {
	watches *WatchedDesk
	wake    chan struct{} // cap 1: added has a node

	count int       // guarded by the desk's mu; how many nodes it has, including those in added
	added []guarded // guarded by the desk's mu; new ones, which gather moves to nodes

	nodes []guarded            // used by run's goroutine only
	cases []reflect.SelectCase // likewise
}

// guarded is one node that a guard watches: a place's own one, or the name's znode with its
// children.
type guarded struct {
	place    *Place              // nil once the node need not be watched; then event is nil, too
	index    int                 // of the node in place.nodes
	onRecall RecallHandler       // nil: the place's own node is watched; else the queue is, of a place that may be kept
	shared   *session.Watched    // the session's shared watch that event belongs to; nil: the guard armed its own
	event    <-chan driver.Event // nil: the node must be read and watched again
	gen      uint64              // generation of the connection that the watch was armed on
}

// run is the guard's goroutine.
func (g *guard) run() {
	desk := g.watches.Desk
	for g.gather() {
		_, moved := desk.Session.State() // closed when there is another connection
		gen := desk.Session.Generation()
		if slices.ContainsFunc(g.nodes, func(n guarded) bool { return n.event != nil && n.gen < gen }) {
			// A watch may not survive a new connection, so the nodes are read again.
			// Many clients may reconnect at the same time, so each waits for a random
			// time first.
			if !session.Sleep(desk.Session.Context(), desk.cfg.Jitter(desk.Session.Timeout()/6), nil) {
				return
			}
		}
		for i := range g.nodes {
			if n := &g.nodes[i]; n.event == nil || n.gen < gen {
				g.look(n)
			}
			if desk.Session.Context().Err() != nil {
				return
			}
		}
		if !g.wait(moved) {
			return
		}
	}
}

// gather takes over the added nodes and removes those that need no watching. It
// returns false if no node is left: then the guard ends.
func (g *guard) gather() bool {
	g.watches.mu.Lock()
	defer g.watches.mu.Unlock()
	own, full := g.watches, g.count == maxGuarded
	g.nodes = slices.DeleteFunc(append(g.nodes, g.added...), func(n guarded) bool { return n.place == nil || n.place.progress.ending() })
	g.added = nil
	switch g.count = len(g.nodes); {
	case g.count == 0:
		own.withRoom = slices.DeleteFunc(own.withRoom, func(other *guard) bool { return other == g })
	case full && g.count < maxGuarded:
		own.withRoom = append(own.withRoom, g)
	}
	return g.count > 0
}

// look reads a place's own node, or lists the queue of a place that is or may be kept, and arms a
// watch on that. If the node is missing, another client has deleted it. If the place is not alone in
// the queue, or that cannot be known, it is recalled.
func (g *guard) look(n *guarded) {
	desk, p := g.watches.Desk, n.place
	c := p.nodes[n.index]
	var node driver.Node
	var names []string
	n.shared, n.event = nil, nil
	err := desk.Session.Repeat(desk.Session.Context(), "watch", func(ctx context.Context, ds driver.Session) (err error) {
		// If the connection changes before the reply, the guard takes the watch for one of the older
		// connection, and looks once more.
		if n.gen = desk.Session.Generation(); n.onRecall != nil {
			names, _, n.event, err = ds.WatchChildren(ctx, c.dir)
		} else {
			node, n.event, err = ds.Watch(ctx, c.path)
		}
		return err
	})
	failed := err != nil && !errors.Is(err, driver.ErrNoNode)
	log := func(text string) {
		desk.cfg.Log().Warn(text, "session", session.HexID(desk.Session.ID()), "cause", Logged(err))
	}
	switch {
	case p.progress.ending() || desk.Session.Context().Err() != nil || errors.Is(err, errs.ErrSessionOver):
		n.place, n.event = nil, nil
	case n.onRecall == nil && err == nil && p.owns(node) == nil:
		p.noteRevocation(node.Data)
	case n.onRecall == nil:
		if n.place, n.event = nil, nil; failed {
			log("zklock: the queue node of a held lock cannot be watched; if another program deletes it, this client does not notice")
		} else {
			desk.Session.Spawn(p.Lose) // ending handles and contexts may take a while
		}
	case err != nil || !(Znode{desk, c.dir}).isAlone(c, names):
		if n.place, n.event = nil, nil; failed {
			log("zklock: the queue of a kept lock cannot be watched for other contenders, so it is not kept")
		}
		n.onRecall.Recalled(p)
	}
}

// owns returns nil if this session has created a node that has the name of one of ours: another session may have put
// one in its place.
func (p *Place) owns(n driver.Node) error {
	if n.Stat.EphemeralOwner != p.Desk.Session.ID() { // TestNodePutInPlaceOfOursIsNotOurs
		return errs.ErrNodeGone
	}
	return nil
}

// wait returns true when the guard has something to do: after an event, when a node was
// added to it, or when the connection has changed. It returns false if the session is over.
func (g *guard) wait(moved <-chan struct{}) bool {
	const others = 3
	g.cases = append(g.cases[:0], receive(g.watches.Session.Context().Done()), receive(moved), receive(g.wake))
	for i := range g.nodes {
		if g.nodes[i].event == nil {
			return true // its watch failed, or is not needed: gather removes the node
		}
		g.cases = append(g.cases, receive(g.nodes[i].event))
	}
	i, value, ok := reflect.Select(g.cases)
	clear(g.cases)
	if i >= others {
		n := &g.nodes[i-others]
		e, _ := value.Interface().(driver.Event)
		if n.shared != nil {
			n.shared.Received(e, ok)
			g.watches.Session.DropWatch(n.shared)
		}
		if n.onRecall != nil && ok && e.Err == nil && !n.place.progress.ending() {
			// As a rule another contender has arrived. If it has left again, or our own node was
			// deleted, a list would show that, but the contender is not made to wait for a list.
			n.onRecall.Recalled(n.place)
			n.place = nil // its queue need not be watched then
		}
		n.event = nil // an event proves nothing: the node is read again
	}
	return i > 0
}
