package place

import (
	"context"
	"errors"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// watchNodes reads our own nodes with watches, which report their deletion by another client. A
// node that is already watched on the present connection is read only if a grant follows: that its
// watch has not fired is not enough then, since a grant must not depend on the arrival of an
// event. gen is the generation of the connection that showed all the nodes; 0 if that was not one
// connection.
func (p *Place) watchNodes(ctx context.Context, grants bool) (own []*session.Watched, gen uint64, err error) {
	desk := p.Desk
	own = make([]*session.Watched, len(p.nodes))
	for i, c := range p.nodes {
		w, read, err := desk.Watch(ctx, c.path)
		var n driver.Node
		var seen uint64
		if err == nil {
			n, seen = w.Node, w.Gen
		}
		if grants && !read && err == nil {
			before := desk.Generation()
			n, err = desk.Read(ctx, "watch", c.path)
			if seen = desk.Generation(); seen != before {
				seen = 0
			}
		}
		switch {
		case errors.Is(err, driver.ErrNoNode), err == nil && n.Stat.EphemeralOwner != desk.ID():
			return nil, 0, errs.ErrNodeGone // or another session has created a node with this name
		case err != nil:
			return nil, 0, desk.cfg.explainList(err, c.dir)
		case i == 0:
			gen = seen
		case seen != gen:
			gen = 0
		}
		own[i] = w
	}
	if p.Granted.IsZero() { // else guards watch its nodes
		p.nodeWatches = own
	}
	return own, gen, nil
}

// listQueue lists the queue of a name up to our own node, which is the last. It applies
// max_contenders, if that was not done before, and returns an error for a contender that conflicts
// with ours.
func (p *Place) listQueue(ctx context.Context, c *contender) ([]queue.Node, error) {
	desk := p.Desk
	q, err := Znode{desk, c.dir}.list(ctx)
	if errors.Is(err, driver.ErrNoNode) {
		return nil, errs.ErrNodeGone
	}
	if err != nil {
		return nil, desk.cfg.explainList(err, c.dir)
	}
	i := slices.IndexFunc(q, func(o queue.Node) bool { return o.Name == c.node() })
	if i < 0 {
		return nil, errs.ErrNodeGone
	}
	desk.mu.Lock()
	q[i].Kind = c.kind // the node's name may still be a writer's
	desk.mu.Unlock()
	if err := queue.Conflict(q, i); err != nil {
		return nil, err
	}
	count := i + 1
	if q[0].MayBeKept() {
		count-- // if it is not in use, its client gives it up for another contender
	}
	if !p.limitChecked && count > desk.cfg.MaxContenders {
		return nil, desk.cfg.tooMany()
	}
	return q[:i+1], nil
}
