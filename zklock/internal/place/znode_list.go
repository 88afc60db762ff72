package place

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// list returns the contenders of a lock in order. A contender of a dialect that
// does not see ours is ErrConflict.
func (z Znode) list(ctx context.Context) (q []queue.Node, err error) {
	s := z.Desk
	var foreign *queue.Dialect
	err = s.Repeat(ctx, "list", func(ctx context.Context) error {
		q, foreign, err = z.listOnce(ctx)
		return err
	})
	if err == nil && foreign != nil {
		return nil, s.cfg.Dialect.ConflictWith(foreign)
	}
	queue.Sort(q)
	return q, err
}

// listOnce does one list, unsorted, and has stray nodes of this session
// deleted: those whose GUID nobody answers for, or which are not the node that
// their contender settled on. A node whose outcome is open is left alone.
// foreign is the dialect of a contender that does not see ours, if any.
func (z Znode) listOnce(ctx context.Context) (q []queue.Node, foreign *queue.Dialect, err error) {
	s, dir := z.Desk, z.Path
	names, _, err := s.DS.Children(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	q = make([]queue.Node, 0, len(names))
	others := 0
	for _, name := range names {
		c, other, ok := s.cfg.Dialect.Parse(name)
		switch {
		case ok:
			q = append(q, c)
		case other != nil:
			foreign = other
		default:
			others++
		}
	}
	if others > 0 && s.parents.firstForeign(dir) {
		s.cfg.Logger.Warn("zklock: a lock's znode has children that are no contenders; they are ignored, and cost a list for each acquisition until somebody removes them", "children", others)
	}
	for _, path := range z.strays(q) {
		s.Spawn(func() { _ = deleteNode(s, path) })
	}
	return q, foreign, nil
}

// strays returns the paths of nodes of this session that should not be there.
func (z Znode) strays(q []queue.Node) []string {
	s, dir := z.Desk, z.Path
	id := s.DS.ID()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var paths []string
	for i := range q {
		if q[i].GUID.Session != id {
			continue
		}
		c := s.enqueued[q[i].GUID.Serial]
		if c == nil || c.node != "" && c.node != q[i].Name {
			paths = append(paths, dir+"/"+q[i].Name)
		}
	}
	return paths
}

// sweep looks for late twins of creates with an unknown outcome, at once and
// again a session timeout later: a twin that nobody answers for would block the
// name until the session ends. The list deletes them.
func (z Znode) sweep() {
	s := z.Desk
	for i := range 2 {
		if i > 0 && !session.Sleep(s.Ctx, s.Timeout, nil) {
			return
		}
		_ = s.Repeat(s.Ctx, "list", func(ctx context.Context) error {
			_, _, err := z.listOnce(ctx)
			return err
		})
	}
}
