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

// watchNodes reads our own nodes with watches, which report their deletion by another
// client. A node that is already watched on the present connection is not read again:
// read says which nodes this call has read.
func (p *Place) watchNodes(ctx context.Context) (own []*session.Watched, read []bool, err error) {
	own, read = make([]*session.Watched, len(p.nodes)), make([]bool, len(p.nodes))
	for i, c := range p.nodes {
		own[i], read[i], err = p.Desk.Watches.Watch(ctx, c.path)
		if err == nil {
			err = p.isOurs(own[i].Node)
		}
		if err != nil {
			return nil, nil, p.explainNode(err, c)
		}
	}
	if p.Granted.IsZero() { // else guards watch its nodes
		p.nodeWatches = own
	}
	return own, read, nil
}

// isOurs returns errs.ErrNodeGone if another session has created a node with the name of ours.
func (p *Place) isOurs(n driver.Node) error {
	if n.Stat.EphemeralOwner != p.Desk.DS.ID() {
		return errs.ErrNodeGone
	}
	return nil
}

// explainNode translates an error of reading one of our own nodes.
func (p *Place) explainNode(err error, c *contender) error {
	if errors.Is(err, driver.ErrNoNode) {
		return errs.ErrNodeGone
	}
	return p.Desk.cfg.explainList(err, c.dir)
}

// seeNodes reads our own nodes right before a grant, and watches them from then on. A node
// that was watched before is read too: that its watch has not fired is not enough,
// since a grant must not depend on the arrival of an event. seeNodes returns the generation
// of the connection that showed all the nodes; 0 if that was not one connection.
func (p *Place) seeNodes(ctx context.Context) (gen uint64, err error) {
	own, read, err := p.watchNodes(ctx)
	if err != nil {
		return 0, err
	}
	for i, c := range p.nodes {
		seen := own[i].Gen
		if !read[i] {
			seen, _ = p.Desk.DS.Conn()
			n, err := p.Desk.Read(ctx, "watch", c.path)
			if err == nil {
				err = p.isOurs(n)
			}
			if err != nil {
				return 0, p.explainNode(err, c)
			}
			if after, _ := p.Desk.DS.Conn(); after != seen {
				return 0, nil
			}
		}
		if i == 0 {
			gen = seen
		} else if seen != gen {
			return 0, nil
		}
	}
	return gen, nil
}

// listQueue lists the queue of a name up to our own node, which is the last.
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
