package zklock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// request is one acquisition: of one name, or of several as one lock.
type request struct {
	client    *Client
	turnstile *turnstile      // through which what it gets may be handed over; nil: it may not
	ctx       context.Context // for hooks: what the Acquire hook returned
	name      string          // as shown: the names joined, if there are several
	mode      Mode
	wants     []want
	try       bool
	label     string
	trace     string
	node      nodeData // of the queue nodes
	data      []byte   // the same, encoded

	// Of the requester's goroutine only, unlike the above, which never change
	// once the request is queued.
	waiting  bool            // the Wait hook was called
	waitCtx  context.Context // what it returned
	since    time.Time       // since when there has been no usable session; zero if there is one
	waitFrom time.Time
	endWait  func(WaitResult)
	ahead    string // the node last told of
}

// take gets hold of what is wanted: it queues, waits for its turn, and starts
// over at the tail when its place is lost to no fault of its own. start, if not
// nil, is a place to begin with: one that waits in the queue already, left
// behind by somebody who gave up, or one that has to be replaced: because it was
// held already, or because it is a reader's and a writer is next.
//
// If ctx ends while a place waits in the queue, take returns that place with the
// error, for somebody else to go on with. On any other error nothing stays
// queued.
func (c *Client) take(ctx context.Context, r *request, start *place) (h *hold, lock *Lock, left *place, err error) {
	for {
		if r.since.IsZero() {
			r.since = time.Now()
		}
		patient, cancel := c.patient(ctx, r.since)
		defer cancel()
		s, err := c.pool.session(patient, r.wants[0].path)
		if err != nil {
			if start != nil {
				start.remove()
			}
			return nil, nil, nil, err
		}
		if start != nil && start.s != s {
			start.remove() // its session is over, or is being replaced
			start = nil
		}
		h, lock, left, err = s.take(ctx, patient, r, start)
		start = nil
		if !errors.Is(err, errSessionOver) && !errors.Is(err, errNodeGone) {
			return h, lock, left, err
		}
		if ctx.Err() != nil {
			return nil, nil, nil, waitEnded(ctx, ErrNotAcquired)
		}
	}
}

// take is one attempt on one session. Until there is a place in the queue, which
// only a session that works can give, it goes on for as long as patient does.
func (s *session) take(ctx, patient context.Context, r *request, p *place) (h *hold, lock *Lock, left *place, err error) {
	alone := false
	if p == nil || !p.granted.IsZero() || p.readers() && r.mode != Shared {
		if r.try {
			if err := s.blocked(patient, r); err != nil {
				return nil, nil, nil, err
			}
		}
		if p, alone, err = s.enqueue(patient, r, p); err != nil {
			return nil, nil, nil, err
		}
	}
	r.since = time.Time{}
	for {
		if !alone {
			if err = s.awaitTurn(ctx, r, p); err != nil {
				break
			}
		}
		if h, lock = s.grant(p, r); h != nil {
			if r.mode == Permit && p.own != nil {
				s.spawn(func() { s.mark(p, r.node) }) // it waited, so somebody may wait behind it
			}
			return h, lock, nil, nil
		}
		alone = false // something had to be waited for, if only a longer lease
	}
	if errors.Is(err, ErrUnavailable) {
		r.since = time.Now().Add(-s.client.cfg.connectTimeout)
	}
	if ctx.Err() == nil || errors.Is(err, errNodeGone) {
		p.remove()
		return nil, nil, nil, err
	}
	if state, _ := s.ds.State(); state == driver.Connected && errors.Is(err, ErrUnavailable) {
		// It ended while something was being read. The session was there;
		// what was waited for was the holder.
		err = waitEnded(ctx, ErrNotAcquired)
	}
	return nil, nil, p, err
}

// awaitTurn returns when it is the place's turn and the lease is long enough to
// say so to the caller.
//
// A grant needs, in this order, nobody ahead on any name; a lease of a good
// length; and the sight of our own nodes, owned by our session, on the connection
// on which nobody was seen ahead: an operator may have deleted one meanwhile, and
// two waiters must never both get in. If one of them had to wait, the others are
// looked at again. The last look at the lease is grant's, in one step with
// becoming a hold.
func (s *session) awaitTurn(ctx context.Context, r *request, p *place) error {
	for {
		gen, err := s.awaitFront(ctx, r, p)
		if err != nil {
			return err
		}
		if left, _ := s.left(); left < s.lease.least() {
			if err := s.awaitLease(ctx); err != nil {
				return err
			}
			continue
		}
		if seen, err := s.seeOwn(ctx, p); err != nil || seen == gen && gen != 0 {
			return err
		}
	}
}

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
			if r.try {
				return 0, ErrNotAcquired // beaten to it
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
					return 0, explainList(err, c.dir)
				}
				d, _ := decodeData(w.node.Data)
				if permits && len(watch) == 1 && d.Granted {
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
		return nil, explainList(err, c.dir)
	}
	for i := range q {
		if q[i].node != c.node {
			continue
		}
		if other, ok := conflict(q, i); ok {
			return nil, fmt.Errorf("%w: %s is in the queue, wanting %v", ErrConflict, other.node, other.kind)
		}
		return q[:i+1], nil
	}
	return nil, errNodeGone
}

// explainList gives the errors of reading other contenders their meaning.
func explainList(err error, dir string) error {
	if errors.Is(err, driver.ErrNoAuth) {
		return fmt.Errorf("%w to read the contenders below %s, so it cannot be told whether they hold the lock: %w", ErrNoAuth, dir, err)
	}
	return err
}

// awaitChange waits until one of ws fires, or has to be armed anew because the
// connection changed: a watch may not survive that, and after many clients'
// reconnect it is done at some time within a sixth of the session timeout. gone
// says that the one watched node was deleted, for certain.
func (s *session) awaitChange(ctx context.Context, ws []*watched) (gone bool, err error) {
	for {
		gen, moved := s.connection()
		if gen > ws[0].gen {
			if !sleep(ctx, jitter(s.timeout/6), s.ends) {
				return false, s.waitError(ctx)
			}
			return false, nil
		}
		fired, e := awaitEvent(ctx, ws, moved, s.ends)
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
			return 0, explainList(err, c.dir)
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

// blocked answers a try without a write: somebody in the queue has to be waited
// for. What this client itself released on another session may still show on
// this one's server, so that is caught up with first.
func (s *session) blocked(ctx context.Context, r *request) error {
	for _, want := range r.wants {
		if p, ok := s.client.parents.find(want.path); ok && p.released != 0 && p.released != s.ds.ID() {
			err := s.repeat(ctx, "sync", func(ctx context.Context) error { return s.ds.Sync(ctx, want.path) })
			if err != nil && !errors.Is(err, driver.ErrNoNode) {
				return err
			}
		}
		q, err := s.list(ctx, want.path)
		if errors.Is(err, driver.ErrNoNode) {
			continue
		}
		if err != nil {
			return explainList(err, want.path)
		}
		q = append(q, queued{kind: want.kind})
		if other, ok := conflict(q, len(q)-1); ok {
			return fmt.Errorf("%w: %s is in the queue, wanting %v", ErrConflict, other.node, other.kind)
		}
		if err := s.blockedBy(ctx, want, q); err != nil {
			return err
		}
	}
	return nil
}

// blockedBy decides for a contender that would be the last of q. A writer that
// blocks a reader may have been downgraded, which only its data tells.
func (s *session) blockedBy(ctx context.Context, want want, q []queued) error {
	for {
		held, watch := decide(q, len(q)-1)
		if held {
			return nil
		}
		if want.kind.mode != Shared {
			return ErrNotAcquired
		}
		var n driver.Node
		err := s.repeat(ctx, "list", func(ctx context.Context) (err error) {
			n, err = s.ds.Get(ctx, want.path+"/"+q[watch[0]].node)
			return err
		})
		switch d, _ := decodeData(n.Data); {
		case errors.Is(err, driver.ErrNoNode):
			q = append(q[:watch[0]], q[watch[0]+1:]...)
		case err != nil:
			return explainList(err, want.path)
		case effective(q[watch[0]].kind, d).mode != Shared:
			return ErrNotAcquired
		default:
			q[watch[0]].kind.mode = Shared
		}
	}
}

// wait tells the hooks whom the request waits for.
func (r *request) wait(position int, ahead Contender) {
	hooks := &r.client.cfg.hooks
	e := WaitEvent{Name: r.name, Mode: r.mode, Position: position, Ahead: ahead}
	switch {
	case !r.waiting:
		r.waiting, r.waitFrom, r.ahead = true, time.Now(), ahead.Node
		r.client.mustWait(r.wants)
		r.waitCtx, r.endWait = start(hooks.Wait, r.ctx, e)
	case r.ahead != ahead.Node:
		r.ahead = ahead.Node
		if hooks.Ahead != nil {
			hooks.Ahead(r.waitCtx, e)
		}
	}
}

// waited ends what wait started, if it did.
func (r *request) waited(err error) {
	if r.waiting {
		r.endWait(WaitResult{Err: err})
	}
}

// mark tells the one behind a permit's node, by changing its data, that it was
// granted: that one is the first in line now. It is tried until it is done, or
// the node is gone, which tells as much.
func (s *session) mark(p *place, d nodeData) {
	d.Granted = true
	_ = s.rewrite(p, d)
}

// waitedFor is how long the request waited for others.
func (r *request) waitedFor() time.Duration {
	if !r.waiting {
		return 0
	}
	return time.Since(r.waitFrom)
}
