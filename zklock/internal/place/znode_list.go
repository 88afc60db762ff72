package place

import (
	"context"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// list returns the contenders of a lock in the order of the queue. It fails with
// ErrConflict if there is a contender of a dialect whose contenders do not wait for
// ours.
func (z Znode) list(ctx context.Context) ([]queue.Node, error) {
	desk, began := z.Desk, lease.Now()
	for {
		desk.mu.Lock()
		l := desk.lists[z.Path]
		if l == nil {
			l = &listing{done: make(chan struct{})}
			desk.lists[z.Path] = l
		}
		if l.begun {
			before := l
			if l = before.next; l == nil {
				l = &listing{done: make(chan struct{})}
				before.next = l
			}
			l.needs++
			desk.mu.Unlock()
			await(ctx, before.done)
			desk.mu.Lock()
			if l.needs--; desk.lists[z.Path] == before { // it has not ended, but ctx has
				desk.mu.Unlock()
				return nil, desk.WaitEnded(ctx, began)
			}
		}
		lists := !l.begun
		l.begun = true
		desk.mu.Unlock()
		if lists {
			l.q, l.err = z.listAlone(ctx)
			l.ended = ctx.Err() != nil
			desk.mu.Lock()
			if l.next != nil && l.next.needs > 0 {
				desk.lists[z.Path] = l.next
			} else {
				delete(desk.lists, z.Path)
			}
			desk.mu.Unlock()
			close(l.done)
		} else if !await(ctx, l.done) {
			return nil, desk.WaitEnded(ctx, began)
		} else if l.ended && l.err != nil {
			continue
		}
		return slices.Clone(l.q), l.err
	}
}

// await waits until done is closed. It returns false if ctx ends first.
func await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// listAlone is list for one waiter, or for all that share the list.
func (z Znode) listAlone(ctx context.Context) (q []queue.Node, err error) {
	desk := z.Desk
	var foreign *queue.Dialect
	err = desk.Repeat(ctx, "list", func(ctx context.Context) error {
		q, foreign, err = z.listOnce(ctx)
		return err
	})
	if err == nil && foreign != nil {
		return nil, desk.cfg.Dialect.ConflictWith(foreign)
	}
	queue.Sort(q)
	return q, err
}

// listOnce lists the contenders of a lock once, unsorted, and has stray nodes of this
// session deleted in the background: see strays. foreign is the dialect of a contender
// that does not wait for ours; nil if there is none.
func (z Znode) listOnce(ctx context.Context) (q []queue.Node, foreign *queue.Dialect, err error) {
	desk, dir := z.Desk, z.Path
	names, _, err := desk.DS.Children(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	q = make([]queue.Node, 0, len(names))
	ignored := 0
	for _, name := range names {
		c, other, ok := desk.cfg.Dialect.Parse(name)
		switch {
		case ok:
			q = append(q, c)
		case other != nil:
			foreign = other
		default:
			ignored++
		}
	}
	if ignored > 0 && desk.parents.warnOnce(dir) {
		desk.cfg.Logger.Warn("zklock: a lock's znode has children that are not contenders; they are ignored, but each acquisition needs a list until they are removed", "children", ignored)
	}
	for _, path := range z.strays(q) {
		desk.Spawn(func() { _ = deleteNode(desk, path) })
	}
	return q, foreign, nil
}

// isContender reports whether a child of a lock's znode is a contender, in any dialect.
func (d *Desk) isContender(child string) bool {
	_, foreign, ok := d.cfg.Dialect.Parse(child)
	return ok || foreign != nil
}

// strays returns the paths of nodes of this session that should not exist: no
// registered contender has the node's GUID, or the one that has it has another node. A
// node is not stray while the outcome of its contender's create is open.
func (z Znode) strays(q []queue.Node) []string {
	desk, dir := z.Desk, z.Path
	id := desk.DS.ID()
	desk.mu.Lock()
	defer desk.mu.Unlock()
	var paths []string
	for i := range q {
		if q[i].GUID.Session != id {
			continue
		}
		c := desk.enqueued[q[i].GUID.Serial]
		if c == nil || c.node() != "" && c.node() != q[i].Name {
			paths = append(paths, dir+"/"+q[i].Name)
		}
	}
	return paths
}

// sweep looks for late twins of creates with an unknown outcome, at once and again a
// session timeout later. The list has them deleted. Otherwise a twin without a
// registered contender would block the name until the session ends.
func (z Znode) sweep() {
	desk := z.Desk
	for i := range 2 {
		if i > 0 && !session.Sleep(desk.Ctx, desk.Timeout, nil) {
			return
		}
		_ = desk.Repeat(desk.Ctx, "list", func(ctx context.Context) error {
			_, _, err := z.listOnce(ctx)
			return err
		})
	}
}
