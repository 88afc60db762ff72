package zklock

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/zklock/go-zklock/zklock/driver"
)

// awaitFront waits until nobody is ahead, on any name of the place, that it has
// to wait for. Names are waited for one after the other: nobody gets in ahead of
// us on one while we wait for another. It returns the generation of the
// connection on which that was seen, 0 if it was more than one.
func (s *session) awaitFront(ctx context.Context, r *request, p *place) (uint64, error) {
	if p.doubtful {
		// A twin of ours may be ahead of somebody on one name who is ahead of us
		// on another: we would wait for each other. A list has it deleted.
		for _, c := range p.nodes {
			if _, err := s.listAhead(ctx, c); err != nil {
				return 0, err
			}
		}
	}
	var gen uint64
	for i, c := range p.nodes {
		g, err := s.awaitFrontOf(ctx, r, p, c)
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
// Nobody of this library can get in ahead of us, so when the only one ahead has
// left, we are the first: that needs no second list. It has left when a read found
// it missing, or when its watch reported the deletion and the connection is still
// the one the watch was armed on; any other event proves nothing. Where more were
// ahead, one list tells which of them are left: usually none is, since they were
// served in order. What a node counts as is read with each watch, since a writer
// may have been downgraded.
func (s *session) awaitFrontOf(ctx context.Context, r *request, p *place, c *contender) (uint64, error) {
	permits := c.kind.permits > 0
list:
	for {
		gen, _ := s.ds.Conn()
		q, err := s.listAhead(ctx, c)
		if err != nil {
			return 0, err
		}
		if limit := s.client.cfg.maxContenders; limit > 0 && !p.counted && len(q) > limit {
			return 0, fmt.Errorf("%w: max_contenders=%d are in the queue", ErrTooManyWaiters, limit)
		}
		for {
			held, watch := decide(q, len(q)-1)
			if held {
				return gen, nil
			}
			if r.try { // beaten to it, or behind a writer that is one no more
				return gen, s.blockedBy(ctx, want{path: c.dir, kind: c.kind}, q)
			}
			ws := make([]*watched, len(watch))
			for i, j := range watch {
				w, err := s.watch(ctx, c.dir+"/"+q[j].node)
				if errors.Is(err, driver.ErrNoNode) {
					if permits || len(q) > 2 || !s.client.cfg.dialect.walks(q[j]) {
						continue list
					}
					gen, _ = s.ds.Conn()
					q = append(q[:j], q[j+1:]...)
					break
				}
				if err != nil {
					return 0, s.client.cfg.explainList(err, c.dir)
				}
				d, _ := decodeData(w.node.Data)
				if permits && len(q)-1 > c.kind.permits && d.Granted {
					continue list // it was granted before we watched: we are the first in line
				}
				if q[j].kind = effective(q[j].kind, d); !permits && q[j].kind.mode == Shared && c.kind.mode == Shared {
					break // no reason to wait for it any more
				}
				ws[i] = w
			}
			if ws[len(ws)-1] == nil {
				continue // the queue is not what it was: decide anew
			}
			ahead := q[watch[len(watch)-1]]
			if r.turnstile != nil {
				r.turnstile.leaderStuck()
			}
			r.wait(len(q)-1, describe(ahead, ws[len(ws)-1].node.Data))
			gone, err := s.awaitChange(ctx, ws)
			if err != nil {
				return 0, err
			}
			if permits || gone && (len(q) > 2 || !s.client.cfg.dialect.walks(ahead)) {
				continue list
			}
			if gone {
				gen = ws[0].gen
				q = append(q[:watch[0]], q[watch[0]+1:]...)
			}
		}
	}
}

// listAhead lists a name's queue up to our own node, which is the last one.
func (s *session) listAhead(ctx context.Context, c *contender) ([]queued, error) {
	q, err := s.list(ctx, c.dir)
	if errors.Is(err, driver.ErrNoNode) {
		return nil, errNodeGone
	}
	if err != nil {
		return nil, s.client.cfg.explainList(err, c.dir)
	}
	for i := range q {
		if q[i].node != c.node {
			continue
		}
		s.mu.Lock()
		q[i].kind = c.kind // its name may say that it was a writer's
		s.mu.Unlock()
		if other, ok := conflict(q, i); ok {
			return nil, errConflictingKind(other)
		}
		return q[:i+1], nil
	}
	return nil, errNodeGone
}

// explainList gives the errors of reading other contenders their meaning.
func (c *config) explainList(err error, dir string) error {
	if errors.Is(err, driver.ErrNoAuth) {
		return fmt.Errorf("%w %s to read the contenders below %s, so it cannot be told whether they hold the lock: %w", ErrNoAuth, c.identityHint(), dir, err)
	}
	return err
}

// awaitChange waits until one of ws fires, or has to be armed anew because the
// connection changed: a watch may not survive that, and after many clients'
// reconnect it is done at some time within a sixth of the session timeout. Most
// watches do survive, and tell at once what happened meanwhile: who would not
// listen to them during that time would keep the whole queue waiting after every
// cut. gone says that the one watched node was deleted, for certain.
func (s *session) awaitChange(ctx context.Context, ws []*watched) (gone bool, err error) {
	for {
		gen, moved := s.connection()
		if gen > ws[0].gen {
			again, cancel := context.WithTimeout(ctx, s.client.cfg.jitter(s.timeout/6))
			fired, _ := awaitEvent(again, ws, nil, s.ctx.Done())
			over := again.Err() != nil
			cancel()
			switch {
			case fired != nil:
				s.watches.drop(fired)
			case ctx.Err() != nil || !over:
				return false, s.waitError(ctx)
			}
			return false, nil // what an event of an older connection says is read again
		}
		fired, e := awaitEvent(ctx, ws, moved, s.ctx.Done())
		switch {
		case fired != nil:
			s.watches.drop(fired)
			now, _ := s.ds.Conn()
			return e.Err == nil && e.Type == driver.EventDeleted && now == fired.gen, nil
		case ctx.Err() != nil || s.ctx.Err() != nil:
			return false, s.waitError(ctx)
		}
	}
}

// awaitEvent returns the first of ws to fire, or nil when ctx ends or one of the
// other channels closes first.
func awaitEvent(ctx context.Context, ws []*watched, moved, ends <-chan struct{}) (*watched, driver.Event) {
	if len(ws) == 1 {
		select {
		case e, ok := <-ws[0].event:
			return ws[0], ws[0].received(e, ok)
		case <-moved:
		case <-ends:
		case <-ctx.Done():
		}
		return nil, driver.Event{}
	}
	cases := make([]reflect.SelectCase, 0, len(ws)+3)
	for _, w := range ws {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(w.event)})
	}
	for _, ch := range []<-chan struct{}{moved, ends, ctx.Done()} {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)})
	}
	i, value, ok := reflect.Select(cases)
	if i >= len(ws) {
		return nil, driver.Event{}
	}
	e, _ := value.Interface().(driver.Event)
	return ws[i], ws[i].received(e, ok)
}

// waitError is the error of a wait for another holder.
func (s *session) waitError(ctx context.Context) error {
	if ctx.Err() != nil {
		return waitEnded(ctx, ErrNotAcquired)
	}
	return errSessionOver
}

// seeOwn reads our own nodes, with watches that will tell if somebody deletes
// them. It returns the generation of the connection on which all were seen, 0 if
// it was more than one.
func (s *session) seeOwn(ctx context.Context, p *place) (gen uint64, err error) {
	p.own = make([]*watched, len(p.nodes))
	for i, c := range p.nodes {
		w, err := s.watch(ctx, c.path())
		switch {
		case errors.Is(err, driver.ErrNoNode):
			return 0, errNodeGone
		case err != nil:
			return 0, s.client.cfg.explainList(err, c.dir)
		case w.node.Stat.EphemeralOwner != s.ds.ID():
			return 0, errNodeGone
		}
		if p.own[i] = w; i == 0 {
			gen = w.gen
		} else if w.gen != gen {
			gen = 0
		}
	}
	return gen, nil
}
