package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// contender is our queue node, from before its create is sent until it is
// surely gone.
//
// Invariants:
//   - It is registered with its session before its create is sent and until its
//     node is gone, and counts as the session's work meanwhile.
//   - While node is empty the outcome of its create is open. Once set, node
//     never changes; a second node with the same GUID is a late twin, a create
//     that was given up as lost and was applied after all, and is deleted
//     wherever it is seen.
//   - A contender belongs to one session. It is never looked for under another.
type contender struct {
	s    *session
	dir  string // the lock's znode
	guid guid
	mode Mode

	node     string // guarded by s.mu; its name below dir
	zxid     int64  // set with node: the transaction that created it
	doubtful bool   // a create's outcome was unknown at some time: a twin may show up
}

// path returns the node's path; its name must be known.
func (c *contender) path() string { return c.dir + "/" + c.node }

// register makes a contender, or returns false if the session is over.
func (s *session) register(dir string, mode Mode) (*contender, bool) {
	if !s.enter() {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	c := &contender{s: s, dir: dir, mode: mode, guid: guid{s.ds.ID(), s.serial}}
	s.enqueued[s.serial] = c
	return c, true
}

// finish forgets a contender whose node is gone, or never was.
func (s *session) finish(c *contender) {
	s.mu.Lock()
	_, there := s.enqueued[c.guid.serial]
	delete(s.enqueued, c.guid.serial)
	s.mu.Unlock()
	if !there {
		return
	}
	if c.doubtful {
		s.spawn(func() { s.sweep(c.dir) })
	}
	s.leave()
}

// enqueue puts a contender into the queue of a name, in one round trip for a
// name that is known. children is the parent's count right after the create, in
// the same transaction: 1 proves that nobody else is in the queue, so that it is
// our turn. More is inconclusive (children may be readers, or no contenders at
// all), and 0 means that the count is not known.
//
// On an error nothing stays queued: the contender is being removed in the
// background, or its session is over.
func (s *session) enqueue(ctx context.Context, r *request) (c *contender, children int32, err error) {
	const maxReaped = 8 // a parent reaped that often in a row is no accident
	for reaped := 0; ; {
		p, err := s.ensureParent(ctx, r.path)
		if err == nil {
			c, children, err = s.create(ctx, r, p)
		}
		switch {
		case err == nil:
			return c, children, nil
		case !errors.Is(err, driver.ErrNoNode):
			return nil, 0, err
		}
		s.client.parents.forget(r.path)
		if reaped++; reaped == maxReaped {
			return nil, 0, explain(err, r.path)
		}
		if !sleep(ctx, jitter(time.Duration(reaped)*5*time.Millisecond), s.ends) {
			return nil, 0, sessionWaitEnded(ctx)
		}
	}
}

// create sends the create of a new contender and learns what came of it.
func (s *session) create(ctx context.Context, r *request, p parent) (*contender, int32, error) {
	c, ok := s.register(r.path, r.mode)
	if !ok {
		return nil, 0, errSessionOver
	}
	limit := time.NewTimer(s.client.cfg.connectTimeout)
	defer limit.Stop()
	// Read before the first try: the node may turn out to be that one's.
	seen := s.client.lastZxid.Load()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, s.timeout/10) {
		w := s.submitCreate(r, c, p)
		select {
		case <-w.done:
		case <-s.ends:
			return nil, 0, errSessionOver
		case <-ctx.Done():
			s.abandon(c, w)
			return nil, 0, sessionWaitEnded(ctx)
		case <-limit.C:
			s.abandon(c, w)
			return nil, 0, fmt.Errorf("%w for %v", ErrUnavailable, s.client.cfg.connectTimeout)
		}
		err := w.err
		if err == nil {
			children, known := s.settle(c, w)
			if !known {
				err = s.readZxid(ctx, c)
			}
			if err == nil {
				err = s.admit(c, seen, children)
			}
			if err != nil {
				s.remove(c)
				return nil, 0, err
			}
			return c, children, nil
		}
		switch {
		case errors.Is(err, driver.ErrConnLoss):
			c.doubtful = true
			found, err := s.recover(ctx, c)
			if err == nil && found {
				err = s.admit(c, seen, 0)
			}
			if err != nil {
				s.abandon(c, nil)
				return nil, 0, err
			}
			if found {
				return c, 0, nil
			}
		case transient(err):
			if !sleep(ctx, jitter(pause), s.ends) {
				s.abandon(c, nil)
				return nil, 0, sessionWaitEnded(ctx)
			}
		case s.ended(err):
			return nil, 0, errSessionOver
		case p.ours && len(w.results) == 2 && errors.Is(w.results[1].Err, driver.ErrNoAuth):
			p.ours = false // we may not write it: create, then list instead
			s.client.parents.add(p)
		case errors.Is(err, driver.ErrNoNode):
			s.finish(c)
			return nil, 0, err
		default:
			s.finish(c)
			return nil, 0, explain(err, r.path)
		}
	}
}

// submitCreate sends the create of c, and for a parent of ours the set behind
// it that tells how many are in the queue. The order of the two matters: the
// other way round the count leaves our own node out.
func (s *session) submitCreate(r *request, c *contender, p parent) *write {
	cfg := &s.client.cfg
	ops := make([]driver.Op, 1, 2)
	ops[0] = driver.CreateOp(c.dir+"/"+contenderPrefix(c.guid, c.mode), r.data, driver.EphemeralSequential, cfg.acls())
	if p.ours {
		ops = append(ops, driver.SetOp(c.dir, parentMark, driver.AnyVersion))
	}
	w := &write{kind: "enqueue", dir: c.dir, ops: ops, creates: true, ctx: r.ctx}
	s.commits.submit(w)
	return w
}

// settle takes over what a successful create returned. known is false when that
// does not include the zxid, for want of a set behind it.
func (s *session) settle(c *contender, w *write) (children int32, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.node = w.results[0].Path[len(c.dir)+1:]
	if len(w.results) < 2 {
		return 0, false
	}
	c.zxid = w.results[1].Stat.Mzxid
	return w.results[1].Stat.NumChildren, true
}

// readZxid reads the zxid of a node created without a set.
func (s *session) readZxid(ctx context.Context, c *contender) error {
	var n driver.Node
	err := s.repeat(ctx, "recover", func(ctx context.Context) (err error) {
		n, err = s.ds.Get(ctx, c.path())
		return err
	})
	switch {
	case errors.Is(err, driver.ErrNoNode):
		return errNodeGone
	case err != nil:
		return err
	}
	c.zxid = n.Stat.Czxid
	return nil
}

// admit looks at a settled contender as a whole: does its token keep its
// promise, and is there room for it?
func (s *session) admit(c *contender, seen int64, children int32) error {
	q, _, _ := parseContender(c.node)
	switch limit := s.client.cfg.maxContenders; {
	case q.seq >= maxSequence:
		return ErrSequenceExhausted
	case c.zxid <= seen:
		return fmt.Errorf("%w: transaction %#x after %#x", ErrTokenRegression, uint64(c.zxid), uint64(seen))
	case limit > 0 && int(children) > limit:
		return fmt.Errorf("%w: max_contenders=%d are in the queue", ErrTooManyWaiters, limit)
	}
	for {
		last := s.client.lastZxid.Load()
		if c.zxid <= last || s.client.lastZxid.CompareAndSwap(last, c.zxid) {
			return nil
		}
	}
}

// recover finds out what became of a create whose reply was lost. The Sync
// orders the list behind everything the old connection may have sent: after a
// reconnect a server refuses what comes from the old one.
func (s *session) recover(ctx context.Context, c *contender) (found bool, err error) {
	var q []queued
	err = s.repeat(ctx, "recover", func(ctx context.Context) error {
		if err := s.ds.Sync(ctx, c.dir); err != nil {
			return err
		}
		q, _, err = s.listOnce(ctx, c.dir)
		return err
	})
	if errors.Is(err, driver.ErrNoNode) {
		return false, nil // the parent is gone, and our node with it
	}
	if err != nil {
		return false, err
	}
	sortQueue(q)
	for i := range q {
		if q[i].guid == c.guid { // the lowest, should there be two
			s.mu.Lock()
			c.node = q[i].node
			s.mu.Unlock()
			err := s.readZxid(ctx, c)
			return err == nil, err
		}
	}
	return false, nil
}

// list returns the contenders of a lock in order. A contender of a recipe that
// does not see ours is ErrConflict.
func (s *session) list(ctx context.Context, dir string) (q []queued, err error) {
	var foreign string
	err = s.repeat(ctx, "list", func(ctx context.Context) error {
		q, foreign, err = s.listOnce(ctx, dir)
		return err
	})
	if err == nil && foreign != "" {
		return nil, fmt.Errorf("%w: a contender of %s is in the queue, which does not wait for this client's nodes", ErrConflict, foreign)
	}
	sortQueue(q)
	return q, err
}

// listOnce does one list, unsorted, and has stray nodes of this session
// deleted: those whose GUID nobody answers for, or which are not the node that
// their contender settled on. A node whose outcome is open is left alone.
// foreign names the recipe of a contender that does not see ours, if any.
func (s *session) listOnce(ctx context.Context, dir string) (q []queued, foreign string, err error) {
	names, _, err := s.ds.Children(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	q = make([]queued, 0, len(names))
	others := 0
	for _, name := range names {
		c, recipe, ok := parseContender(name)
		switch {
		case ok:
			q = append(q, c)
		case recipe != "":
			foreign = recipe
		default:
			others++
		}
	}
	if others > 0 {
		s.client.cfg.logger.Warn("zklock: a lock's znode has children that are no contenders; they are ignored, and cost a list for each acquisition", "children", others)
	}
	for _, path := range s.strays(dir, q) {
		s.spawn(func() { _ = s.deleteNode(s.ctx, path) })
	}
	return q, foreign, nil
}

// strays returns the paths of nodes of this session that should not be there.
func (s *session) strays(dir string, q []queued) []string {
	id := s.ds.ID()
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for i := range q {
		if q[i].guid.session != id {
			continue
		}
		c := s.enqueued[q[i].guid.serial]
		if c == nil || c.node != "" && c.node != q[i].node {
			paths = append(paths, dir+"/"+q[i].node)
		}
	}
	return paths
}
