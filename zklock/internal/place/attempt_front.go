package place

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// ownWatchShare is the share of a session timeout after which a waiter watches its own
// nodes. Shorter waits do without: the read would be one more for each.
const ownWatchShare = 40

// awaitFront waits until nobody is ahead, on any name of the place, that it has
// to wait for. Names are waited for one after the other: nobody gets in ahead of
// us on one while we wait for another. It returns the generation of the
// connection on which that was seen, 0 if it was more than one.
func (a Attempt) awaitFront(ctx context.Context, p *Place) (uint64, error) {
	if p.doubtful {
		// A twin of ours may be ahead of somebody on one name who is ahead of us
		// on another: we would wait for each other. A list has it deleted.
		for _, c := range p.nodes {
			if _, err := p.listAhead(ctx, c); err != nil {
				return 0, err
			}
		}
	}
	var gen uint64
	for i, c := range p.nodes {
		g, err := a.awaitFrontOf(ctx, p, c)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			gen = g
		} else if g != gen {
			gen = 0
		}
	}
	return gen, nil
}

// awaitFrontOf is awaitFront for one name.
//
// No client of this library gets in ahead of a node that is there, so the line ahead
// only ever gets shorter: it is listed once and walked from then on, see line.left.
// What a node counts as is read with each watch, since a writer may have been
// downgraded. Our own nodes are watched as well: a waiter whose node was deleted
// queues again at once.
func (a Attempt) awaitFrontOf(ctx context.Context, p *Place, c *contender) (uint64, error) {
	s, r := a.Desk, a.Request
	l := line{dialect: s.cfg.Dialect}
	var own []*session.Watched // nil: they are not watched yet
	if p.Granted.IsZero() {
		own = p.own
	}
	for {
		if l.q != nil {
			l.update(s)
		}
		if l.q == nil {
			l.gen, _ = s.DS.Conn()
			q, err := p.listAhead(ctx, c)
			if err != nil {
				return 0, err
			}
			if limit := s.cfg.MaxContenders; limit > 0 && !p.counted && len(q) > limit {
				return 0, fmt.Errorf("%w: max_contenders=%d are in the queue", errs.ErrTooManyWaiters, limit)
			}
			l.listed(s, q)
		}
		held, watch := queue.Decide(l.q, len(l.q)-1)
		if held {
			return l.gen, nil
		}
		if r.Try { // beaten to it, or behind a writer that is one no more
			return l.gen, Znode{s, c.dir}.blockedBy(ctx, c.kind, l.q)
		}
		ahead, err := p.watchAhead(ctx, c, &l, watch)
		if err != nil {
			return 0, err
		}
		if ahead == nil {
			continue // the line is not what it was: decide again
		}
		if own != nil {
			if own, _, err = p.watchOwn(ctx); err != nil {
				return 0, err
			}
		}
		nearest := len(watch) - 1
		r.By.Waits(len(l.q)-1, l.q[watch[nearest]], ahead[nearest].Node.Data)
		what, err := p.awaitChange(ctx, ahead, own)
		switch {
		case err != nil:
			return 0, err
		case what == timeToLook && own == nil:
			if own, _, err = p.watchOwn(ctx); err != nil {
				return 0, err
			}
		case what == timeToLook:
		case c.kind.Permits > 0:
			l.q = nil
		case what == aheadGone:
			l.left(watch[0], ahead[0].Gen, true)
		}
	}
}

// watchAhead watches those in line whom decide has named. It returns nil if what it
// reads changes the line, so that there may be others to watch.
func (p *Place) watchAhead(ctx context.Context, c *contender, l *line, watch []int) ([]*session.Watched, error) {
	s := p.Desk
	permits := c.kind.Permits
	ahead := make([]*session.Watched, len(watch))
	for i, j := range watch {
		w, read, err := s.Watch(ctx, c.dir+"/"+l.q[j].Name)
		if errors.Is(err, driver.ErrNoNode) {
			// A newer connection than the one of the last event proves nothing
			// beside it, whatever its server says.
			if gen, _ := s.DS.Conn(); l.seen(gen, true) {
				l.left(j, gen, false)
			}
			if permits > 0 {
				l.q = nil
			}
			return nil, nil
		}
		if err != nil {
			return nil, s.cfg.explainList(err, c.dir)
		}
		if !l.seen(w.Gen, read) {
			return nil, nil
		}
		d, _ := queue.Decode(w.Node.Data)
		if permits > 0 && len(l.q)-1 > permits && d.Granted {
			l.q = nil // it was granted before we watched: we are the first in line
			return nil, nil
		}
		if l.q[j].Kind = queue.Effective(l.q[j].Kind, d); permits == 0 && l.q[j].Kind.Mode == queue.Shared && c.kind.Mode == queue.Shared {
			return nil, nil // no reason to wait for it any more
		}
		ahead[i] = w
	}
	return ahead, nil
}

// listAhead lists a name's queue up to our own node, which is the last one.
func (p *Place) listAhead(ctx context.Context, c *contender) ([]queue.Node, error) {
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
