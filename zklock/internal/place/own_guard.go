package place

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// maxGuarded is how many nodes one guard watches. One goroutine for each node would
// need about four times the memory of the node's lock. With more nodes for each
// goroutine, each event would cost more.
const maxGuarded = 64

// guard is a goroutine that watches nodes of this client until their places are given up.
// It tells a node's place when another client has deleted the node, and when the node's data
// asks the holder to give the lock back. For a kept place it also watches the queue: if another
// contender may be there, the guard recalls the place. The guard ends when it has no nodes left,
// or when the session ends.
type guard struct {
	watches *ownWatches
	wake    chan struct{} // cap 1: entrusted has a node

	count     int       // guarded by the desk's mu; how many nodes it has, including those in entrusted
	entrusted []guarded // guarded by the desk's mu; new ones, which gather moves to nodes

	nodes []guarded            // used by run's goroutine only
	cases []reflect.SelectCase // likewise
}

// guarded is one node that a guard watches: a place's own one, or the name's znode with its
// children.
type guarded struct {
	place  *Place              // nil once the node need not be watched; then event is nil, too
	index  int                 // of the node in place.nodes
	keeper Keeper              // nil: the place's own node is watched; else the queue is, for a place that was kept
	shared *session.Watched    // the session's shared watch from which event comes; nil: the guard armed its own
	event  <-chan driver.Event // nil: the node has to be read and watched again
	gen    uint64              // connection generation on which the watch was armed
}

// run is the guard's goroutine.
func (g *guard) run() {
	desk := g.watches.Desk
	for g.gather() {
		gen, moved := desk.Connection()
		if slices.ContainsFunc(g.nodes, func(n guarded) bool { return n.event != nil && n.gen < gen }) {
			// A watch may not survive a new connection, so the nodes are read again.
			// Many clients may reconnect at the same time, so each waits for a random
			// time first.
			if !session.Sleep(desk.Ctx, desk.cfg.Jitter(desk.Timeout/6), nil) {
				return
			}
		}
		for i := range g.nodes {
			switch n := &g.nodes[i]; {
			case n.place == nil || n.event != nil && n.gen >= gen:
			case n.keeper != nil:
				g.list(n)
			default:
				g.read(n)
			}
			if desk.Ctx.Err() != nil {
				return
			}
		}
		if !g.wait(moved) {
			return
		}
	}
}

// gather adds the entrusted nodes and removes those that need no watching any more. It
// returns false if no node is left: then the guard ends.
func (g *guard) gather() bool {
	g.watches.mu.Lock()
	defer g.watches.mu.Unlock()
	own, full := g.watches, g.count == maxGuarded
	g.nodes = slices.DeleteFunc(append(g.nodes, g.entrusted...), func(n guarded) bool { return n.place == nil || n.place.life.ending() })
	g.entrusted = nil
	switch g.count = len(g.nodes); {
	case g.count == 0:
		own.withRoom = slices.DeleteFunc(own.withRoom, func(other *guard) bool { return other == g })
	case full && g.count < maxGuarded:
		own.withRoom = append(own.withRoom, g)
	}
	return g.count > 0
}

// read reads a node and arms a watch on it. If the node is missing, another client has
// deleted it, unless this client is removing its place.
func (g *guard) read(n *guarded) {
	desk, p := g.watches.Desk, n.place
	n.shared, n.event = nil, nil
	var read driver.Node
	err := desk.Repeat(desk.Ctx, "watch", func(ctx context.Context) (err error) {
		// If the connection changes meanwhile, the watch counts as armed on the older
		// one, so that the node is read once more.
		n.gen, _ = desk.DS.Conn()
		read, n.event, err = desk.DS.Watch(ctx, p.nodes[n.index].path)
		return err
	})
	if err == nil {
		p.noteRevocation(read.Data)
		return
	}
	n.place, n.event = nil, nil
	switch {
	case errors.Is(err, driver.ErrNoNode):
		if !p.life.ending() { // else this client has deleted it
			desk.Spawn(p.Lose) // ending handles and contexts may take a while
		}
	case desk.Ctx.Err() == nil:
		desk.cfg.Logger.Warn("zklock: the queue node of a held lock cannot be watched; if another program deletes it, this client does not notice", "session", session.HexID(desk.DS.ID()), "cause", logged(err))
	}
}

// list lists the queue of a kept place and arms a watch on the list. If the place is not
// alone in the queue, or that cannot be known, the place is recalled.
func (g *guard) list(n *guarded) {
	desk, p := g.watches.Desk, n.place
	c := p.nodes[n.index]
	n.event = nil
	var names []string
	err := desk.Repeat(desk.Ctx, "watch", func(ctx context.Context) (err error) {
		n.gen, _ = desk.DS.Conn()
		names, _, n.event, err = desk.DS.WatchChildren(ctx, c.dir)
		return err
	})
	if p.life.ending() || desk.Ctx.Err() != nil || errors.Is(err, errs.ErrSessionOver) {
		n.place, n.event = nil, nil
		return
	}
	if err == nil && slices.Contains(names, c.node()) && !slices.ContainsFunc(names, func(name string) bool { return name != c.node() && desk.isContender(name) }) {
		return
	}
	g.recall(n)
	if err != nil && !errors.Is(err, driver.ErrNoNode) {
		desk.cfg.Logger.Warn("zklock: the queue of a kept lock cannot be watched for other contenders, so it is not kept", "session", session.HexID(desk.DS.ID()), "cause", logged(err))
	}
}

// recall recalls a kept place. Its queue need not be watched any more.
func (g *guard) recall(n *guarded) {
	p := n.place
	n.place, n.event = nil, nil
	n.keeper.Recalled(p)
}

// wait returns true when the guard has something to do: after an event, when a node was
// entrusted to it, or on a new connection. It returns false if the session is over.
func (g *guard) wait(moved <-chan struct{}) bool {
	const others = 3
	g.cases = append(g.cases[:0], receive(g.watches.Ctx.Done()), receive(moved), receive(g.wake))
	for i := range g.nodes {
		if g.nodes[i].event == nil {
			return true // its watch failed, or is not needed any more: gather removes the node
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
			g.watches.Watches.Drop(n.shared)
		}
		if n.keeper != nil && ok && e.Err == nil && !n.place.life.ending() {
			// As a rule another contender has arrived. If it has left again, or our own node was
			// deleted, a list would show that, but the contender is not made to wait for a list.
			g.recall(n)
		}
		n.event = nil // an event proves nothing: the node is read again
	}
	return i > 0
}
