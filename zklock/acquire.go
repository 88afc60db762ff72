package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// request is one acquisition of one name.
type request struct {
	client *Client
	ctx    context.Context // for hooks: what the Acquire hook returned
	name   string
	path   string
	mode   Mode
	try    bool
	data   []byte // of the queue node

	waiting  bool // the Wait hook was called
	waitFrom time.Time
	endWait  func(WaitResult)
	ahead    string // the node last told of
}

// take gets hold of a name: it queues, waits for its turn, and starts over when
// its place in the queue is lost to nobody's fault of its own, at the tail.
//
// On an error nothing is held, and nothing stays queued.
func (c *Client) take(ctx context.Context, r *request) (h *hold, err error) {
	defer func() { r.waited(err) }()
	for {
		s, err := c.pool.session(ctx, r.path)
		if err != nil {
			return nil, err
		}
		h, err = s.take(ctx, r)
		switch {
		case errors.Is(err, errSessionOver), errors.Is(err, errNodeGone):
			if ctx.Err() != nil {
				return nil, waitEnded(ctx, ErrNotAcquired)
			}
		default:
			return h, err
		}
	}
}

// take is one attempt on one session.
func (s *session) take(ctx context.Context, r *request) (*hold, error) {
	if r.try {
		if err := s.blocked(ctx, r); err != nil {
			return nil, err
		}
	}
	c, children, err := s.enqueue(ctx, r)
	if err != nil {
		return nil, err
	}
	h := &hold{client: s.client, s: s, c: c, name: r.name, path: r.path, mode: r.mode,
		token: Token{Zxid: c.zxid}, ended: make(chan struct{})}
	if err = s.awaitTurn(ctx, r, h, children); err != nil {
		s.remove(c)
		if state, _ := s.ds.State(); state == driver.Connected && ctx.Err() != nil && errors.Is(err, ErrUnavailable) {
			// It ended while something was being read. The session was there;
			// what was waited for was the holder.
			err = waitEnded(ctx, ErrNotAcquired)
		}
		return nil, err
	}
	return h, nil
}

// awaitTurn returns when it is the contender's turn and the lease is long
// enough to say so to the caller.
//
// The checks are made again as long as one of them had to wait: a grant needs,
// in this order, nobody ahead; a lease of a good length; after any wait at all,
// the sight of our own node, owned by our session, since an operator may have
// deleted it meanwhile, and two waiters must never both get in; and then, in one
// step with becoming a hold, the lease once more.
func (s *session) awaitTurn(ctx context.Context, r *request, h *hold, children int32) error {
	alone := children == 1
	waited := false
	for {
		var gen uint64 // connection on which nobody was seen ahead
		if !alone {
			var err error
			if gen, err = s.awaitFront(ctx, r, h.c, children); err != nil {
				return err
			}
			waited = true
		}
		if left, _ := s.left(); left < s.lease.least() {
			if err := s.awaitLease(ctx); err != nil {
				return err
			}
			waited = true
		}
		if waited {
			w, err := s.seeOwn(ctx, h.c)
			if err != nil {
				return err
			}
			if !alone && w.gen != gen {
				continue // seen on different connections: look at the queue again
			}
			h.own = w
		}
		if s.grant(h) {
			return nil
		}
		waited = true
	}
}

// awaitFront waits until nobody is ahead that a contender has to wait for. It
// returns the generation of the connection on which that was seen.
//
// The queue is listed once and then walked: nobody can get in ahead of us, so
// the set of those ahead only shrinks. A node is taken off it when a read found
// it missing, or when its watch reported the deletion and the connection is
// still the one the watch was armed on; any other event proves nothing.
func (s *session) awaitFront(ctx context.Context, r *request, c *contender, children int32) (uint64, error) {
	gen, _ := s.ds.Conn()
	q, err := s.list(ctx, c.dir)
	if errors.Is(err, driver.ErrNoNode) {
		return 0, errNodeGone
	}
	if err != nil {
		return 0, explainList(err, c.dir)
	}
	self := indexOf(q, c.node)
	if self < 0 {
		return 0, errNodeGone
	}
	if limit := s.client.cfg.maxContenders; limit > 0 && children == 0 && self >= limit {
		return 0, fmt.Errorf("%w: max_contenders=%d are in the queue", ErrTooManyWaiters, limit)
	}
	q = q[:self+1]
	for {
		held, watch := decide(q, len(q)-1)
		if held {
			return gen, nil
		}
		if r.try {
			return 0, ErrNotAcquired // beaten to it
		}
		ahead := q[watch]
		w, err := s.watch(ctx, c.dir+"/"+ahead.node)
		switch {
		case errors.Is(err, driver.ErrNoNode):
			gen, _ = s.ds.Conn()
			q = append(q[:watch], q[watch+1:]...)
			continue
		case err != nil:
			return 0, explainList(err, c.dir)
		}
		r.wait(watch+1, describe(ahead, w.node.Data))
		gone, err := s.awaitChange(ctx, w)
		if err != nil {
			return 0, err
		}
		if gone {
			gen = w.gen
			q = append(q[:watch], q[watch+1:]...)
		}
	}
}

// explainList gives the errors of reading other contenders their meaning.
func explainList(err error, dir string) error {
	if errors.Is(err, driver.ErrNoAuth) {
		return fmt.Errorf("%w to read the contenders below %s, so it cannot be told whether they hold the lock: %w", ErrNoAuth, dir, err)
	}
	return err
}

// awaitChange waits until w fires, or has to be armed anew because the
// connection changed: a watch may not survive that, and after many clients'
// reconnect it is done at some time within a sixth of the session timeout.
// gone says that the watched node was deleted, for certain.
func (s *session) awaitChange(ctx context.Context, w *watched) (gone bool, err error) {
	for {
		gen, moved := s.connection()
		if gen > w.gen {
			if !sleep(ctx, jitter(s.timeout/6), s.ends) {
				return false, s.waitError(ctx)
			}
			return false, nil
		}
		select {
		case e, ok := <-w.event:
			e = w.received(e, ok)
			s.watches.drop(w)
			now, _ := s.ds.Conn()
			return e.Err == nil && e.Type == driver.EventDeleted && now == w.gen, nil
		case <-moved:
		case <-s.ends:
			return false, errSessionOver
		case <-ctx.Done():
			return false, s.waitError(ctx)
		}
	}
}

// waitError is the error of a wait for another holder.
func (s *session) waitError(ctx context.Context) error {
	if ctx.Err() != nil {
		return waitEnded(ctx, ErrNotAcquired)
	}
	return errSessionOver
}

// seeOwn reads our own node, with a watch that will tell if somebody deletes it.
func (s *session) seeOwn(ctx context.Context, c *contender) (*watched, error) {
	w, err := s.watch(ctx, c.path())
	switch {
	case errors.Is(err, driver.ErrNoNode):
		return nil, errNodeGone
	case err != nil:
		return nil, explainList(err, c.dir)
	case w.node.Stat.EphemeralOwner != s.ds.ID():
		return nil, errNodeGone
	}
	return w, nil
}

// blocked answers a try without a write: somebody in the queue has to be waited
// for. What this client itself released on another session may still show on
// this one's server, so that is caught up with first.
func (s *session) blocked(ctx context.Context, r *request) error {
	if p, ok := s.client.parents.find(r.path); ok && p.released != 0 && p.released != s.ds.ID() {
		err := s.repeat(ctx, "sync", func(ctx context.Context) error { return s.ds.Sync(ctx, r.path) })
		if err != nil && !errors.Is(err, driver.ErrNoNode) {
			return err
		}
	}
	q, err := s.list(ctx, r.path)
	if errors.Is(err, driver.ErrNoNode) {
		return nil
	}
	if err != nil {
		return explainList(err, r.path)
	}
	if held, _ := decide(append(q, queued{mode: r.mode}), len(q)); !held {
		return ErrNotAcquired
	}
	return nil
}

func indexOf(q []queued, node string) int {
	for i := range q {
		if q[i].node == node {
			return i
		}
	}
	return -1
}

// wait tells the hooks whom the request waits for.
func (r *request) wait(position int, ahead Contender) {
	hooks := &r.client.cfg.hooks
	e := WaitEvent{Name: r.name, Mode: r.mode, Position: position, Ahead: ahead}
	switch {
	case !r.waiting:
		r.waiting, r.waitFrom, r.ahead = true, time.Now(), ahead.Node
		r.ctx, r.endWait = start(hooks.Wait, r.ctx, e)
	case r.ahead != ahead.Node:
		r.ahead = ahead.Node
		if hooks.Ahead != nil {
			hooks.Ahead(r.ctx, e)
		}
	}
}

// waited ends what wait started.
func (r *request) waited(err error) {
	if r.waiting {
		r.endWait(WaitResult{Err: err})
	}
}

// waitedFor is how long the request waited for others.
func (r *request) waitedFor() time.Duration {
	if !r.waiting {
		return 0
	}
	return time.Since(r.waitFrom)
}
