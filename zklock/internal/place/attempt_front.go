package place

import (
	"context"

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
			if _, err := (ownNodes{p}).list(ctx, c); err != nil {
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
	mine, own := ownNodes{p}, []*session.Watched(nil)
	l := line{p: p, c: c, dialect: s.cfg.Dialect}
	watched := p.Granted.IsZero() && p.own != nil // our own nodes are
	for {
		if err := l.refresh(ctx); err != nil {
			return 0, err
		}
		held, watch := queue.Decide(l.q, len(l.q)-1)
		if held {
			return l.gen, nil
		}
		if r.Try { // beaten to it, or behind a writer that is one no more
			return l.gen, Znode{s, c.dir}.blockedBy(ctx, c.kind, l.q)
		}
		ahead, err := l.watchAhead(ctx, watch)
		if err != nil {
			return 0, err
		}
		if ahead == nil {
			continue // the line is not what it was: decide again
		}
		if watched {
			if own, _, err = mine.watch(ctx); err != nil {
				return 0, err
			}
		}
		nearest := len(watch) - 1
		r.By.Waits(len(l.q)-1, l.q[watch[nearest]], ahead[nearest].Node.Data)
		what, err := s.awaitChange(ctx, ahead, own)
		switch {
		case err != nil:
			return 0, err
		case what == timeToLook:
			watched = true
		case c.kind.Permits > 0:
			l.q = nil
		case what == aheadGone:
			l.left(watch[0], ahead[0].Gen, true)
		}
	}
}
