package place

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// ownNodes are the nodes of a place, as their owner looks at them.
type ownNodes struct{ *Place }

// watch reads our own nodes, with watches that report their deletion by another
// client, unless they are watched on the present connection. read says which of them
// were read by this call.
func (p ownNodes) watch(ctx context.Context) (own []*session.Watched, read []bool, err error) {
	s := p.Desk
	own, read = make([]*session.Watched, len(p.nodes)), make([]bool, len(p.nodes))
	for i, c := range p.nodes {
		if own[i], read[i], err = s.Watches.Watch(ctx, c.path()); err != nil {
			return nil, nil, p.explain(err, c)
		}
		if own[i].Node.Stat.EphemeralOwner != s.DS.ID() {
			return nil, nil, errs.ErrNodeGone
		}
	}
	if p.Granted.IsZero() { // else others see to its watches
		p.own = own
	}
	return own, read, nil
}

// explain gives the errors of reading an own node their meaning.
func (p ownNodes) explain(err error, c *contender) error {
	s := p.Desk
	if errors.Is(err, driver.ErrNoNode) {
		return errs.ErrNodeGone
	}
	return s.cfg.explainList(err, c.dir)
}

// see reads our own nodes right before a grant, and watches them from then on. Where
// a watch was there before, that it has not fired is not enough: what a caller holds
// must not depend on an event. It returns the generation of the connection on which all
// were seen, 0 if it was more than one.
func (p ownNodes) see(ctx context.Context) (gen uint64, err error) {
	own, read, err := p.watch(ctx)
	if err != nil {
		return 0, err
	}
	for i, c := range p.nodes {
		seen := own[i].Gen
		if !read[i] {
			if seen, err = p.read(ctx, c); err != nil {
				return 0, err
			}
		}
		if i == 0 {
			gen = seen
		} else if seen != gen {
			gen = 0
		}
	}
	return gen, nil
}

// read reads a node of ours. It returns the generation of the connection on which it
// was seen, 0 if that is not certain.
func (p ownNodes) read(ctx context.Context, c *contender) (gen uint64, err error) {
	s := p.Desk
	var n driver.Node
	err = s.Repeat(ctx, "watch", func(ctx context.Context) (err error) {
		gen, _ = s.DS.Conn()
		n, err = s.DS.Get(ctx, c.path())
		return err
	})
	if err != nil {
		return 0, p.explain(err, c)
	}
	if n.Stat.EphemeralOwner != s.DS.ID() {
		return 0, errs.ErrNodeGone
	}
	if after, _ := s.DS.Conn(); after != gen {
		return 0, nil
	}
	return gen, nil
}

// list lists a name's queue up to our own node, which is the last one.
func (p ownNodes) list(ctx context.Context, c *contender) ([]queue.Node, error) {
	s := p.Desk
	q, err := Znode{s, c.dir}.list(ctx)
	if errors.Is(err, driver.ErrNoNode) {
		return nil, errs.ErrNodeGone
	}
	if err != nil {
		return nil, s.cfg.explainList(err, c.dir)
	}
	for i := range q {
		if q[i].Name != c.node {
			continue
		}
		s.Mu.Lock()
		q[i].Kind = c.kind // its name may say that it was a writer's
		s.Mu.Unlock()
		if other, ok := queue.Conflict(q, i); ok {
			return nil, queue.KindConflict(other)
		}
		return q[:i+1], nil
	}
	return nil, errs.ErrNodeGone
}
