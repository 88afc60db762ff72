package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

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
func (a attempt) awaitFront(ctx context.Context, p *place) (uint64, error) {
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
func (a attempt) awaitFrontOf(ctx context.Context, p *place, c *contender) (uint64, error) {
	s, r := a.s, a.r
	l := line{dialect: s.cfg.dialect}
	var own []*session.Watched // nil: they are not watched yet
	if p.granted.IsZero() {
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
			if limit := s.cfg.maxContenders; limit > 0 && !p.counted && len(q) > limit {
				return 0, fmt.Errorf("%w: max_contenders=%d are in the queue", errs.ErrTooManyWaiters, limit)
			}
			l.listed(s, q)
		}
		held, watch := queue.Decide(l.q, len(l.q)-1)
		if held {
			return l.gen, nil
		}
		if r.try { // beaten to it, or behind a writer that is one no more
			return l.gen, znode{s, c.dir}.blockedBy(ctx, c.kind, l.q)
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
		if r.turnstile != nil {
			r.turnstile.leaderStuck()
		}
		r.wait(len(l.q)-1, describe(l.q[watch[nearest]], ahead[nearest].Node.Data))
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
func (p *place) watchAhead(ctx context.Context, c *contender, l *line, watch []int) ([]*session.Watched, error) {
	s := p.s
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
func (p *place) listAhead(ctx context.Context, c *contender) ([]queue.Node, error) {
	s := p.s
	q, err := znode{s, c.dir}.list(ctx)
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

// explainList gives the errors of reading other contenders their meaning.
func (c *config) explainList(err error, dir string) error {
	if errors.Is(err, driver.ErrNoAuth) {
		return fmt.Errorf("%w %s to read the contenders below %s, so it cannot be told whether they hold the lock: %w", errs.ErrNoAuth, c.identityHint(), dir, err)
	}
	return err
}

// change is what ended a waiter's sleep.
type change int

const (
	timeToLook     change = iota // nothing is known to have changed
	somethingFired               // which proves nothing
	aheadGone                    // the first one ahead was deleted, for certain
)

// awaitChange waits until something ahead, or one of our own nodes, changes, or until it
// is time to read them again.
//
// A watch may not survive a new connection, and after many clients' reconnect it is
// armed again at some time within a sixth of the session timeout. Most watches do
// survive, and report at once what happened meanwhile: a waiter that did not listen to
// them during that time would keep the whole queue waiting after every cut.
func (p *place) awaitChange(ctx context.Context, ahead, own []*session.Watched) (change, error) {
	s := p.s
	all := append(slices.Clip(ahead), own...)
	armed := slices.MinFunc(all, func(a, b *session.Watched) int { return cmp.Compare(a.Gen, b.Gen) }).Gen
	for {
		gen, moved := s.Connection()
		survived := gen > armed
		var look time.Duration
		switch {
		case survived:
			look, moved = s.cfg.Jitter(s.Timeout/6), nil
		case own == nil:
			look = s.Timeout / ownWatchShare
		}
		fired, e, late := awaitEvent(ctx, all, look, moved, s.Ctx.Done())
		switch {
		case fired != nil:
			s.Watches.Drop(fired)
			now, _ := s.DS.Conn() // what an event of an older connection says is read again
			if fired == ahead[0] && !survived && e.Err == nil && e.Type == driver.EventDeleted && now == fired.Gen {
				return aheadGone, nil
			}
			return somethingFired, nil
		case ctx.Err() != nil || s.Ctx.Err() != nil:
			return 0, p.waitError(ctx)
		case late:
			return timeToLook, nil
		}
	}
}

// awaitEvent returns the first of ws to fire; or nil when ctx ends or one of the other
// channels closes first, or look has passed, which is late. A look of 0 never passes.
func awaitEvent(ctx context.Context, ws []*session.Watched, look time.Duration, moved, ends <-chan struct{}) (fired *session.Watched, e driver.Event, late bool) {
	var timer <-chan time.Time
	if look > 0 {
		t := time.NewTimer(look)
		defer t.Stop()
		timer = t.C
	}
	var second <-chan driver.Event
	switch len(ws) {
	case 1:
	case 2:
		second = ws[1].Event
	default:
		return awaitOneOf(ctx, ws, timer, moved, ends)
	}
	select {
	case e, ok := <-ws[0].Event:
		return ws[0], ws[0].Received(e, ok), false
	case e, ok := <-second:
		return ws[1], ws[1].Received(e, ok), false
	case <-timer:
		return nil, driver.Event{}, true
	case <-moved:
	case <-ends:
	case <-ctx.Done():
	}
	return nil, driver.Event{}, false
}

// awaitOneOf is awaitEvent for any number of watches.
func awaitOneOf(ctx context.Context, ws []*session.Watched, timer <-chan time.Time, moved, ends <-chan struct{}) (fired *session.Watched, e driver.Event, late bool) {
	cases := make([]reflect.SelectCase, 0, len(ws)+4)
	receive := func(ch any) {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)})
	}
	for _, w := range ws {
		receive(w.Event)
	}
	receive(timer)
	receive(moved)
	receive(ends)
	receive(ctx.Done())
	i, value, ok := reflect.Select(cases)
	if i >= len(ws) {
		return nil, driver.Event{}, i == len(ws)
	}
	e, _ = value.Interface().(driver.Event)
	return ws[i], ws[i].Received(e, ok), false
}

// waitError is the error of a wait for another holder.
func (p *place) waitError(ctx context.Context) error {
	if ctx.Err() != nil {
		return errs.WaitEnded(ctx, errs.ErrNotAcquired)
	}
	return errs.ErrSessionOver
}

// watchOwn reads our own nodes, with watches that report their deletion by another
// client, unless they are watched on the present connection. read says which of them
// were read by this call.
func (p *place) watchOwn(ctx context.Context) (own []*session.Watched, read []bool, err error) {
	s := p.s
	own, read = make([]*session.Watched, len(p.nodes)), make([]bool, len(p.nodes))
	for i, c := range p.nodes {
		if own[i], read[i], err = s.Watch(ctx, c.path()); err != nil {
			return nil, nil, p.explainOwn(err, c)
		}
		if own[i].Node.Stat.EphemeralOwner != s.DS.ID() {
			return nil, nil, errs.ErrNodeGone
		}
	}
	if p.granted.IsZero() { // else others see to its watches
		p.own = own
	}
	return own, read, nil
}

// explainOwn gives the errors of reading an own node their meaning.
func (p *place) explainOwn(err error, c *contender) error {
	s := p.s
	if errors.Is(err, driver.ErrNoNode) {
		return errs.ErrNodeGone
	}
	return s.cfg.explainList(err, c.dir)
}

// seeOwn reads our own nodes right before a grant, and watches them from then on. Where
// a watch was there before, that it has not fired is not enough: what a caller holds
// must not depend on an event. It returns the generation of the connection on which all
// were seen, 0 if it was more than one.
func (p *place) seeOwn(ctx context.Context) (gen uint64, err error) {
	own, read, err := p.watchOwn(ctx)
	if err != nil {
		return 0, err
	}
	for i, c := range p.nodes {
		seen := own[i].Gen
		if !read[i] {
			if seen, err = p.readOwn(ctx, c); err != nil {
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

// readOwn reads a node of ours. It returns the generation of the connection on which it
// was seen, 0 if that is not certain.
func (p *place) readOwn(ctx context.Context, c *contender) (gen uint64, err error) {
	s := p.s
	var n driver.Node
	err = s.Repeat(ctx, "watch", func(ctx context.Context) (err error) {
		gen, _ = s.DS.Conn()
		n, err = s.DS.Get(ctx, c.path())
		return err
	})
	if err != nil {
		return 0, p.explainOwn(err, c)
	}
	if n.Stat.EphemeralOwner != s.DS.ID() {
		return 0, errs.ErrNodeGone
	}
	if after, _ := s.DS.Conn(); after != gen {
		return 0, nil
	}
	return gen, nil
}
