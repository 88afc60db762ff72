package place

import (
	"context"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// sharedList is a list of a queue. A list costs as much as the queue is long, and many waiters of
// a session may need one at the same time, so they share it: a list that begins after a waiter
// has asked is as good as one of its own.
type sharedList struct {
	ctx     context.Context // of the list's requests
	stop    context.CancelFunc
	waiters int           // guarded by Desk.mu; the list ends when the last one has left
	done    chan struct{} // closed when the fields below are set
	q       []queue.Node
	err     error
}

// list returns the contenders of a lock in the order of the queue. It fails with ErrConflict if
// there is a contender of a dialect whose contenders do not wait for ours. A waiter that needs a list
// while none is under way makes it itself, and alone: a goroutine more would cost as much as the list.
func (z Znode) list(ctx context.Context) ([]queue.Node, error) {
	z.Desk.mu.Lock()
	l, running := z.Desk.lists[z.Path]
	if !running {
		z.Desk.lists[z.Path] = nil
		z.Desk.mu.Unlock()
		defer z.goOn()
		return z.listAlone(ctx)
	}
	if l == nil {
		l = &sharedList{done: make(chan struct{})}
		l.ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx)) // not one waiter's end
		z.Desk.lists[z.Path] = l
	}
	l.waiters++
	z.Desk.mu.Unlock()
	if err := z.Desk.Session.Await(ctx, l.done); err != nil {
		z.leave(l)
		return nil, err
	}
	return slices.Clone(l.q), l.err
}

// leave takes a waiter off a list. A list that no waiter needs ends: it must not hold up later ones,
// nor take a lone request's turn.
func (z Znode) leave(l *sharedList) {
	z.Desk.mu.Lock()
	defer z.Desk.mu.Unlock()
	if l.waiters--; l.waiters > 0 {
		return
	}
	l.stop()
	if z.Desk.lists[z.Path] == l { // not begun; runLists has the key
		z.Desk.lists[z.Path] = nil
	}
}

// goOn has the list begin that waiters need when another one has ended. If the session is over, they notice
// that themselves.
func (z Znode) goOn() {
	z.Desk.mu.Lock()
	wanted := z.Desk.lists[z.Path] != nil
	if !wanted {
		delete(z.Desk.lists, z.Path) // TestListOfAWaiterThatLeftHoldsUpNoOther
	}
	z.Desk.mu.Unlock()
	if wanted {
		z.Desk.Session.Spawn(z.runLists)
	}
}

// runLists lists the queue until no waiter needs another list.
func (z Znode) runLists() {
	for {
		z.Desk.mu.Lock()
		l := z.Desk.lists[z.Path]
		if z.Desk.lists[z.Path] = nil; l == nil {
			delete(z.Desk.lists, z.Path)
		}
		z.Desk.mu.Unlock()
		if l == nil {
			return
		}
		l.q, l.err = z.listAlone(l.ctx)
		l.stop()
		close(l.done)
	}
}

// listAlone is list for one waiter, or for all that share the list.
func (z Znode) listAlone(ctx context.Context) (q []queue.Node, err error) {
	var foreign *queue.Dialect
	err = z.Desk.Session.Repeat(ctx, "list", func(ctx context.Context, ds driver.Session) error {
		q, foreign, err = z.listOnce(ctx, ds)
		return err
	})
	if err == nil && foreign != nil { // TestForeignChildrenAndDataAreLeftAlone
		return nil, z.Desk.cfg.Dialect.ConflictWith(foreign)
	}
	return q, err
}

// listOnce lists the contenders of a lock once, in order, and has stray nodes of this
// client deleted in the background: see strays. foreign is the dialect of a contender
// that does not wait for ours; nil if there is none.
func (z Znode) listOnce(ctx context.Context, ds driver.Session) (q []queue.Node, foreign *queue.Dialect, err error) {
	names, _, err := ds.Children(ctx, z.Path)
	if err != nil {
		return nil, nil, err
	}
	found, foreign, rest := z.sort(names)
	q = found[z.Desk.cfg.Dialect.Family]
	first := false
	if len(rest) > 0 {
		z.Desk.parents.known(z.Path, func(p *parent) { first, p.warned = !p.warned, true })
	}
	if first {
		z.Desk.cfg.Log().Warn("zklock: a lock's znode has children that are not contenders; they are ignored, but each acquisition needs a list until they are removed", "children", len(rest))
	}
	for _, path := range z.strays(q) {
		z.Desk.Session.Spawn(func() { _ = z.Desk.deleteNode(path) })
	}
	return q, foreign, nil
}

// isAlone reports whether ours is the only contender among the children of a lock's znode.
func (z Znode) isAlone(ours *ownNode, names []string) bool {
	found, foreign, _ := z.sort(names)
	q := found[z.Desk.cfg.Dialect.Family]
	return foreign == nil && len(q) == 1 && q[0].Name == ours.node()
}

// strays returns the paths of nodes that sessions of this client have made, and that no place of
// the client owns: see Desk.disowns. Other contenders wait for them, and their session may live for days.
func (z Znode) strays(q []queue.Node) []string {
	var paths []string
	for _, i := range z.Desk.straysIn(q) {
		paths = append(paths, z.Path+"/"+q[i].Name)
	}
	return paths
}

// disowns reports whether a node that this session has made should not exist: no registered
// contender has the node's GUID, or the one that has it has another node.
//
// Invariants:
//   - A desk is only asked about GUIDs that its session has made. So what another client, or an
//     earlier session of this one, has made is left alone.
//   - While the outcome of a create is open, its node is not disowned: its place may adopt it.
//   - The answer true is final, whichever session asks. A contender is registered before its create
//     is sent, and so before its node can be seen; its GUID is never registered again.
//   - Nodes of a session that is over are left alone: they go with it, after loss_delay. A place
//     ends its registration for that reason only when the session is over already, so the session
//     is looked at last.
func (d *Desk) disowns(o queue.Node) bool {
	d.mu.Lock()
	c := d.enqueued[o.GUID.Serial]
	stray := c == nil || c.node() != "" && c.node() != o.Name
	d.mu.Unlock()
	return stray && !d.Session.IsOver() // TestNodesOfASessionThatIsOverAreNoStrays
}
