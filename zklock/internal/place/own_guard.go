package place

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// maxGuarded is how many nodes one guard watches. A goroutine for each node
// would cost some four times the memory of the lock that it is about; with more
// nodes a goroutine, each event would cost more.
const maxGuarded = 64

// guard watches nodes of this client's own, until the places they belong to are
// given up, and tells those whose node somebody else has deleted. It ends with
// the last of its nodes, or with the session.
type guard struct {
	o    *ownWatches
	wake chan struct{} // cap 1: there is something in entrusted

	count     int       // guarded by o.mu; nodes, those in entrusted included
	entrusted []guarded // guarded by o.mu; on their way to nodes

	nodes []guarded // of run's goroutine only
	cases []reflect.SelectCase
}

// guarded is one node that a guard watches.
type guarded struct {
	place  *Place // nil once there is nothing to watch for any more
	index  int    // of the node
	shared *session.Watched
	event  <-chan driver.Event // nil: to be read, and watched, anew
	gen    uint64              // connection generation on which it was armed
}

// run is the guard's goroutine.
func (g *guard) run() {
	s := g.o.s
	for g.gather() {
		gen, moved := s.Connection()
		if slices.ContainsFunc(g.nodes, func(n guarded) bool { return n.event != nil && n.gen < gen }) {
			// A watch may not survive a new connection. Many clients get one at
			// the same time, so each reads at some time within a while.
			if !session.Sleep(s.Ctx, s.cfg.Jitter(s.Timeout/6), nil) {
				return
			}
		}
		for i := range g.nodes {
			if n := &g.nodes[i]; n.event == nil || n.gen < gen {
				g.read(n)
			}
			if s.Ctx.Err() != nil {
				return
			}
		}
		if !g.wait(moved) {
			return
		}
	}
}

// gather takes in what was entrusted and lets go of what needs no watching any
// more. false: nothing is left, the guard ends.
func (g *guard) gather() bool {
	g.o.mu.Lock()
	defer g.o.mu.Unlock()
	full := g.count == maxGuarded
	g.nodes = slices.DeleteFunc(append(g.nodes, g.entrusted...), func(n guarded) bool { return n.place == nil || n.place.life.ending() })
	g.entrusted = nil
	switch g.count = len(g.nodes); {
	case g.count == 0:
		g.o.roomy = slices.DeleteFunc(g.o.roomy, func(other *guard) bool { return other == g })
	case full && g.count < maxGuarded:
		g.o.roomy = append(g.o.roomy, g)
	}
	return g.count > 0
}

// read reads a node and arms a watch on it. A node that is missing was deleted
// by somebody else, unless its place is on its way out.
func (g *guard) read(n *guarded) {
	s, p := g.o.s, n.place
	n.shared, n.event = nil, nil
	err := s.Repeat(s.Ctx, "watch", func(ctx context.Context) (err error) {
		// A watch armed while the connection changed counts for the older one:
		// then it is read once more.
		n.gen, _ = s.DS.Conn()
		_, n.event, err = s.DS.Watch(ctx, p.nodes[n.index].path())
		return err
	})
	if err == nil {
		return
	}
	n.place, n.event = nil, nil
	switch {
	case errors.Is(err, driver.ErrNoNode):
		if !p.life.ending() { // else it was this client that took it away
			s.Spawn(p.Lose) // to end handles and contexts may take a while
		}
	case s.Ctx.Err() == nil:
		s.cfg.Logger.Warn("zklock: a held lock's own node cannot be watched; its deletion by somebody else would go unnoticed", "session", s.DS.ID(), "cause", logged(err))
	}
}

// wait returns when there is something to do: an event, another node, or another
// connection. false: the session is over.
func (g *guard) wait(moved <-chan struct{}) bool {
	const others = 3
	receive := func(ch any) reflect.SelectCase {
		return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
	}
	g.cases = append(g.cases[:0], receive(g.o.s.Ctx.Done()), receive(moved), receive(g.wake))
	for i := range g.nodes {
		if g.nodes[i].event == nil {
			return true // it could not be watched
		}
		g.cases = append(g.cases, receive(g.nodes[i].event))
	}
	i, value, ok := reflect.Select(g.cases)
	clear(g.cases)
	if i >= others {
		n := &g.nodes[i-others]
		if n.shared != nil {
			e, _ := value.Interface().(driver.Event)
			n.shared.Received(e, ok)
			g.o.s.Watches.Drop(n.shared)
		}
		n.event = nil // to be read again: an event proves nothing
	}
	return i > 0
}
