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

// awaitFront waits until the place has to wait for no contender ahead, on any of its
// names. It waits for one name after the other: no contender can get ahead of us on one
// name while we wait for another. It returns the generation of the connection that
// showed that; 0 if that was more than one connection.
func (a Attempt) awaitFront(ctx context.Context, p *Place) (gen uint64, err error) {
	if p.doubtful || !p.limitChecked && len(p.nodes) > 1 {
		// A twin of ours may be ahead of a contender on one name, while that contender is
		// ahead of us on another: the two would wait for each other. A list of the queue
		// finds the twin and has it deleted. It also finds a queue that is too long,
		// before the place has waited to be the first in another one.
		for _, c := range p.nodes { // the lines list again: much may happen before their turn
			if _, err := p.listQueue(ctx, c); err != nil {
				return 0, err
			}
		}
		p.limitChecked = true
	}
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

// awaitFrontOf is awaitFront for one name. It watches what is ahead in the line. Each watch also
// reads the node's data, since a writer may have been downgraded to a reader. Our own nodes are
// watched too: a waiter whose node was deleted queues again at once.
//
// A waiter that is not the first in line rests: it does not need the lease. It needs the
// lease again as soon as a watch has fired, before it reads anything: so a session at rest
// proves its lease while the waiter finds out whether its turn has come. A wake-up to read
// again after a reconnect, or to watch our own nodes, does not end the rest.
func (a Attempt) awaitFrontOf(ctx context.Context, p *Place, c *contender) (uint64, error) {
	desk, r := a.Desk, a.Request
	var own []*session.Watched
	l := line{p: p, c: c}
	resting := false
	rest := func(begin bool) {
		switch {
		case begin && !resting:
			desk.Rest()
		case !begin && resting:
			desk.Stir()
		}
		resting = begin
	}
	defer rest(false)
	watchOwn := p.Granted.IsZero() && p.nodeWatches != nil // whether to watch our own nodes
	for {
		if l.watched == nil {
			if waits, err := a.decide(ctx, &l); !waits {
				return l.sight.Gen, err
			}
		}
		ahead, err := l.watchAhead(ctx)
		if err != nil {
			return 0, err
		}
		if ahead == nil {
			continue // the line has changed: decide again
		}
		if watchOwn {
			if own, _, err = p.watchNodes(ctx, false); err != nil {
				return 0, err
			}
		}
		nearest := len(ahead) - 1
		r.By.Waits(l.ahead, entryOf(l.watched[nearest], ahead[nearest].Node, false))
		rest(l.far)
		fired, gone, err := desk.awaitChange(ctx, ahead, own)
		if fired {
			rest(false)
		}
		switch {
		case err != nil:
			return 0, err
		case !fired:
			watchOwn = true
		case c.kind.Permits > 0:
			l.forget()
		case gone:
			l.removeGone(0, ahead[0].Gen, true)
		}
	}
}

// decide finds out which contenders to watch. waits is false if there is none, and if there is
// an error.
func (a Attempt) decide(ctx context.Context, l *line) (waits bool, err error) {
	q, err := l.refresh(ctx)
	if err != nil {
		return false, err
	}
	held, watch := queue.Decide(q, len(q)-1)
	if r := a.Request; !held && r.Try && !a.recalls { // another contender was faster, or the one ahead was a writer and is a reader now
		position, ahead, err := Znode{a.Desk, l.c.dir}.blockedBy(ctx, l.c.kind, q)
		if position > 0 {
			r.By.Waits(position, ahead)
			err = errs.ErrTaken
		}
		return false, err
	}
	for _, i := range watch {
		l.watched = append(l.watched, q[i])
	}
	// What the waiter does not know makes it only seem further back: the queue may be shorter
	// than the line. A place that is far on one of its names cannot be granted next, wherever it
	// is on the others.
	l.far = !queue.First(q, len(q)-1)
	return !held, nil
}

// blocked returns the error of a try that would have to wait for a contender in a
// queue; nil if it would not. It writes nothing. replaces, if not nil, is a place that the try's own
// would replace, so its nodes do not count. recalls: the only nodes ahead may be kept ones,
// which their clients give up when another contender arrives.
//
// blocked waits for releases of this client that are not confirmed, because their callers do not
// wait for that. If this client has released the name on another session, this one's server may
// still show the node, so a Sync comes first.
func (a Attempt) blocked(ctx context.Context, replaces *Place) (recalls bool, err error) {
	desk, r := a.Desk, a.Request
	for _, want := range r.Wants {
		z := Znode{desk, want.Path}
		for _, gone := range desk.parents.left(want.Path) {
			if err := desk.Await(ctx, gone); err != nil {
				return false, err
			}
		}
		if id := desk.parents.get(want.Path).releasedOn; id != 0 && id != desk.ID() {
			if err := z.Sync(ctx); err != nil && !errors.Is(err, driver.ErrNoNode) {
				return false, err
			}
		}
		q, err := z.list(ctx)
		if errors.Is(err, driver.ErrNoNode) {
			continue
		}
		if err != nil {
			return false, desk.cfg.explainList(err, want.Path)
		}
		// As for Acquire: a node whose sequence number is at the end of the range is
		// ordered behind every new contender.
		q = slices.DeleteFunc(q, func(c queue.Node) bool { return c.Seq >= queue.MaxSequence || replaces.has(c.Name) })
		q = append(q, queue.Node{Kind: want.Kind})
		if err := queue.Conflict(q, len(q)-1); err != nil {
			return false, err
		}
		position, ahead, err := z.blockedBy(ctx, want.Kind, q)
		switch {
		case err != nil:
			return false, err
		case position == 1 && ahead.MayBeKept():
			recalls = true
		case position > 0:
			r.By.Waits(position, ahead)
			return false, errs.ErrTaken
		}
	}
	return recalls, nil
}
