package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// enqueue takes a place in the queue of every name wanted, in one round trip for
// names that are known. replaces, if not nil, is a place that is given up by the
// same transaction. alone says that it proves that nobody else is in the queue:
// each parent's count of children, right after the create, was 1. Any other
// count is inconclusive (others may be readers, or no contenders at all).
//
// On an error nothing stays queued, replaces neither: it is being removed in the
// background, or its session is over.
func (a Attempt) enqueue(ctx context.Context, replaces *Place) (p *Place, alone bool, err error) {
	s, r := a.Desk, a.Request
	const maxReaped = 8 // a parent reaped that often in a row is no accident
	began := lease.Now()
	for reaped := 0; ; {
		var parents []parent
		if parents, err = a.ensureParents(ctx, replaces != nil); err == nil {
			p, alone, err = a.create(ctx, parents, replaces)
		}
		if err == nil {
			return p, alone, nil
		}
		if !errors.Is(err, driver.ErrNoNode) {
			break
		}
		// A parent was removed (an idle container is), or the node to replace is
		// gone already; what went wrong where matters little, nothing was applied.
		for _, w := range r.Wants {
			s.parents.forget(w.Path)
		}
		if replaces != nil {
			replaces.Remove()
			replaces = nil
			continue
		}
		if reaped++; reaped == maxReaped {
			err = s.cfg.explain(err, r.Wants[0].Path)
			break
		}
		if !session.Sleep(ctx, s.cfg.Jitter(time.Duration(reaped)*5*time.Millisecond), s.Ctx.Done()) {
			err = s.Interrupted(ctx, began)
			break
		}
	}
	if replaces != nil {
		replaces.Remove()
	}
	return nil, false, err
}

func (a Attempt) ensureParents(ctx context.Context, occupied bool) ([]parent, error) {
	wants := a.Request.Wants
	found := make([]parent, len(wants))
	for i, w := range wants {
		var err error
		if found[i], err = (Znode{a.Desk, w.Path}).ensure(ctx, occupied); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// create sends the creation of a new place and learns what came of it. When it
// fails, replaces is the caller's to remove, unless the new place has taken it
// over because the outcome is open.
func (a Attempt) create(ctx context.Context, parents []parent, replaces *Place) (*Place, bool, error) {
	s, r := a.Desk, a.Request
	p, ok := newPlace(s, r.Wants)
	if !ok {
		return nil, false, errs.ErrSessionOver
	}
	if p.replaces = replaces; replaces != nil {
		replaces.giveUp() // whatever comes of it, and before it can be gone
	}
	began := lease.Now()
	// Read before the first try: the nodes may turn out to be that one's.
	seen := s.zxids.newest.Load()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, s.Timeout/10) {
		w := a.submitCreate(p, parents)
		select {
		case <-w.Done:
		case <-s.Ctx.Done():
			return nil, false, errs.ErrSessionOver
		case <-ctx.Done():
			a.abandon(p, w)
			return nil, false, s.WaitEnded(ctx, began)
		}
		err := w.Err
		switch {
		case err == nil:
			return a.created(ctx, p, seen, w.Children)
		case errors.Is(err, driver.ErrConnLoss):
			p.doubtful = true
			found, err := a.recover(ctx, p)
			if err != nil {
				a.abandon(p, nil)
				return nil, false, err
			}
			if found {
				return a.created(ctx, p, seen, nil)
			}
		case session.Transient(err):
			if !session.Sleep(ctx, s.cfg.Jitter(pause), s.Ctx.Done()) {
				a.abandon(p, nil)
				return nil, false, s.Interrupted(ctx, began)
			}
		case s.Ended(err):
			return nil, false, errs.ErrSessionOver
		case a.setRefused(w, parents):
			// We may not write that parent: create, then list instead.
		default:
			p.forget()
			if errors.Is(err, driver.ErrNoNode) {
				return nil, false, err
			}
			return nil, false, s.cfg.explain(err, r.Wants[0].Path)
		}
	}
}

// submitCreate sends the creates of p, each with a set of the parent behind it,
// if that is ours, which tells how many are in the queue. The order of the two
// matters: the other way round the count leaves our own node out. What p
// replaces is deleted first, so that it is not counted either.
func (a Attempt) submitCreate(p *Place, parents []parent) *session.Write {
	s, r := a.Desk, a.Request
	cfg := s.cfg
	w := &session.Write{Kind: "enqueue", Creates: p, Ctx: r.Ctx, Ops: make([]driver.Op, 0, 2*len(p.nodes)+1)}
	data := r.nodeData(s.Shared).Encode()
	if p.replaces != nil {
		w.Kind = "requeue"
		for _, c := range p.replaces.nodes {
			w.Ops = append(w.Ops, driver.DeleteOp(c.path(), driver.AnyVersion))
		}
	}
	for i, c := range p.nodes {
		w.Ops = append(w.Ops, driver.CreateOp(c.dir+"/"+cfg.Dialect.Prefix(c.guid, c.kind), data, driver.EphemeralSequential, cfg.acls()))
		if parents[i].ours {
			w.Ops = append(w.Ops, driver.SetOp(c.dir, parentMark, driver.AnyVersion))
		}
	}
	s.Commits.Submit(w)
	return w
}

// setRefused reports whether a write failed because a parent may not be set, and
// marks that parent.
func (a Attempt) setRefused(w *session.Write, parents []parent) bool {
	s := a.Desk
	if len(w.Results) != len(w.Ops) {
		return false
	}
	for i := range w.Ops {
		if w.Ops[i].Kind != driver.OpSet || !errors.Is(w.Results[i].Err, driver.ErrNoAuth) {
			continue
		}
		for j := range parents {
			if parents[j].path == w.Ops[i].Path {
				parents[j].ours = false
				s.parents.add(parents[j])
				return true
			}
		}
	}
	return false
}

// Below implements session.Entry.
func (p *Place) Below(set map[string]bool) bool {
	return slices.ContainsFunc(p.nodes, func(c *contender) bool { return set[c.dir] })
}

// Add implements session.Entry.
func (p *Place) Add(set map[string]bool) {
	for _, c := range p.nodes {
		set[c.dir] = true
	}
}

// SettleLocked implements session.Entry: it takes over what a successful transaction
// returned. children holds
// each parent's count, -1 where that is not known. The session's mu is held.
func (p *Place) SettleLocked(w *session.Write) (children []int32) {
	children = make([]int32, 0, len(p.nodes))
	for i := range w.Ops {
		switch w.Ops[i].Kind {
		case driver.OpCreate:
			p.nodes[len(children)].settleLocked(w.Results[i].Path)
			children = append(children, -1)
		case driver.OpSet:
			stat := &w.Results[i].Stat
			children[len(children)-1] = stat.NumChildren
			p.Zxid = stat.Mzxid
			p.Desk.parents.noteVersion(w.Ops[i].Path, stat.Version)
		}
	}
	return children
}

// created completes a place whose nodes are there: what it replaces is gone with
// the same transaction, and it is looked at as a whole.
func (a Attempt) created(ctx context.Context, p *Place, seen int64, children []int32) (_ *Place, alone bool, err error) {
	s := p.Desk
	requeued := p.replaces != nil
	p.counted = requeued || len(children) > 0 && !slices.Contains(children, -1)
	if requeued {
		p.replaces.forget()
		p.replaces = nil
	}
	if p.Zxid == 0 {
		err = a.readZxid(ctx, p)
	}
	if err == nil {
		limit := s.cfg.MaxContenders
		if requeued {
			limit = 0 // it applies to first enqueues
		}
		err = a.accept(p, seen, children, limit)
	}
	if err != nil {
		p.Remove()
		return nil, false, err
	}
	alone = len(children) > 0
	for _, n := range children {
		alone = alone && n == 1
	}
	p.Others = !alone
	p.move(queued)
	return p, alone, nil
}

// readZxid reads the zxid of nodes created without a set, or found again.
func (a Attempt) readZxid(ctx context.Context, p *Place) error {
	s := p.Desk
	var n driver.Node
	err := s.Repeat(ctx, "recover", func(ctx context.Context) (err error) {
		n, err = s.DS.Get(ctx, p.nodes[0].path())
		return err
	})
	switch {
	case errors.Is(err, driver.ErrNoNode):
		return errs.ErrNodeGone
	case err != nil:
		return err
	}
	p.Zxid = n.Stat.Czxid
	return nil
}

// accept looks at a place as a whole: does its token keep its promise, and is
// there room for it among at most limit contenders, if that is not 0?
func (a Attempt) accept(p *Place, seen int64, children []int32, limit int) error {
	s := p.Desk
	for i, c := range p.nodes {
		q, _, _ := s.cfg.Dialect.Parse(c.node)
		if q.Seq >= queue.MaxSequence {
			return errs.ErrSequenceExhausted
		}
		if limit > 0 && i < len(children) && int(children[i]) > limit {
			return fmt.Errorf("%w: max_contenders=%d are in the queue", errs.ErrTooManyWaiters, limit)
		}
	}
	if p.Zxid <= seen {
		s.zxids.regressed.Store(true)
		return fmt.Errorf("%w: transaction %#x after %#x", errs.ErrTokenRegression, uint64(p.Zxid), uint64(seen))
	}
	for {
		last := s.zxids.newest.Load()
		if p.Zxid <= last || s.zxids.newest.CompareAndSwap(last, p.Zxid) {
			return nil
		}
	}
}
