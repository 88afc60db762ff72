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

// enqueue takes a place in the queue of every wanted name. For names whose znodes are
// known to exist that takes one round trip. replaces, if not nil, is a place whose
// nodes the same transaction deletes.
//
// alone means that the transaction proves that no other contender is in the queue: each
// parent's count of children, right after the create, was 1. A larger count proves
// nothing: the other children may be readers, or not be contenders at all.
//
// On an error neither the new place nor replaces stays queued: each is being removed in
// the background, or its session is over.
func (a Attempt) enqueue(ctx context.Context, replaces *Place) (p *Place, alone bool, err error) {
	desk, r := a.Desk, a.Request
	const maxReaped = 8 // if the parent was removed this often in a row, that is not a coincidence
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
		// A parent was removed, as idle containers are, or the node to replace is already
		// gone. It does not matter which: nothing of the transaction was applied.
		for _, w := range r.Wants {
			desk.parents.forget(w.Path)
		}
		if replaces != nil {
			replaces.Remove()
			replaces = nil
			continue
		}
		if reaped++; reaped == maxReaped {
			err = desk.cfg.explain(err, r.Wants[0].Path)
			break
		}
		if !session.Sleep(ctx, desk.cfg.Jitter(time.Duration(reaped)*5*time.Millisecond), desk.Ctx.Done()) {
			err = desk.Interrupted(ctx, began)
			break
		}
	}
	if replaces != nil {
		replaces.Remove()
	}
	return nil, false, err
}

// ensureParents makes sure that the znodes of all wanted names exist. For occupied see
// parents.find.
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

// create creates the nodes of a new place, and finds out whether they exist when a
// reply is lost. If it fails, the caller has to remove replaces. Where the outcome is
// still unknown then, abandon ends replaces too, which is harmless.
func (a Attempt) create(ctx context.Context, parents []parent, replaces *Place) (*Place, bool, error) {
	desk, r := a.Desk, a.Request
	before := beginProof(desk, r.Wants)
	p, ok := newPlace(desk, r.Wants, r.Keep && mayKeep(desk, r.Wants, before))
	if !ok {
		return nil, false, errs.ErrSessionOver
	}
	p.before = before
	if p.replaces = replaces; replaces != nil {
		replaces.giveUp() // whatever the outcome, and before its nodes can be gone
	}
	began := lease.Now()
	// Read before the first try: that try may turn out to have created the nodes.
	seen := desk.zxids.newest.Load()
	var doubt error // why the outcome of a try was unknown
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, desk.Timeout/10) {
		unclear := desk.freshNames.unclear.Load()
		w := a.submitCreate(ctx, p, parents, isWarm(p))
		select {
		case <-w.Done:
		case <-desk.Ctx.Done():
			return nil, false, errs.ErrSessionOver
		case <-ctx.Done():
			a.abandon(p, w, parents)
			return nil, false, because(desk.WaitEnded(ctx, began), doubt)
		}
		err := w.Err
		desk.freshNames.note(w, parents, unclear)
		switch {
		case err == nil:
			return a.created(ctx, p, parents, seen, w.Children)
		case errors.Is(err, driver.ErrConnLoss):
			p.doubtful, doubt = true, err
			found, err := a.recover(ctx, p)
			if err != nil {
				a.abandon(p, nil, parents)
				return nil, false, because(err, doubt)
			}
			if found {
				return a.created(ctx, p, parents, seen, nil)
			}
			if err := a.makeAll(ctx, parents); err != nil {
				p.unregister()
				return nil, false, err
			}
		case session.Transient(err):
			if !session.Sleep(ctx, desk.cfg.Jitter(pause), desk.Ctx.Done()) {
				if !errors.Is(err, driver.ErrNotSent) {
					w = nil // abandon looks for the nodes
				}
				a.abandon(p, w, parents)
				return nil, false, desk.Interrupted(ctx, began)
			}
		case desk.Ended(err):
			return nil, false, errs.ErrSessionOver
		case a.setRefused(w, parents):
			// This client may not write that parent. The next try creates without the
			// set, and the queue is listed instead of counted.
		case isRefused(w, parents):
			if err := a.makeRefused(ctx, w, parents); err != nil {
				p.unregister()
				return nil, false, err
			}
		default:
			p.unregister()
			if errors.Is(err, driver.ErrNoNode) {
				return nil, false, err
			}
			return nil, false, desk.cfg.explain(err, r.Wants[0].Path)
		}
	}
}

// because adds to the error of a wait without a session what happened to the last try: a server
// that cuts the connection of each try may not accept the request. It is added as text only.
func because(err, doubt error) error {
	if doubt == nil || !errors.Is(err, errs.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %v", err, doubt)
}

// submitCreate sends the creates of p. Each is followed by a set of its parent, if the
// parent has our mark: the set's reply has the count of the queue's nodes. The order of
// the two matters: in front of the create, the set's count would not include our own
// node. A warm name needs no set. A parent that is unmade is created right before the node.
// The nodes of the place that p replaces are deleted first, so that they are not counted.
// ctx is that of the caller, which may give up.
func (a Attempt) submitCreate(ctx context.Context, p *Place, parents []parent, warm bool) *session.Write {
	desk, r := a.Desk, a.Request
	cfg := desk.cfg
	w := &session.Write{Kind: "enqueue", Creates: p, Ctx: r.Ctx, Ops: make([]driver.Op, 0, 2*len(p.nodes)+1)}
	data := desk.nodeData(r.Origin, r.Mode, p.keepable).Encode()
	if p.replaces != nil {
		w.Kind = "requeue"
		for _, c := range p.replaces.nodes {
			w.Ops = append(w.Ops, driver.DeleteOp(c.path(), driver.AnyVersion))
		}
	}
	for i, c := range p.nodes {
		if isUnmade(parents[i]) {
			w.Ops = append(w.Ops, driver.CreateOp(c.dir, parentMark, driver.Container, cfg.acls()))
			w.Risky, w.GivenUp = true, ctx.Done()
		}
		w.Ops = append(w.Ops, driver.CreateOp(c.dir+"/"+cfg.Dialect.Prefix(c.guid, c.kind), data, driver.EphemeralSequential, cfg.acls()))
		if parents[i].marked && !warm {
			w.Ops = append(w.Ops, driver.SetOp(c.dir, parentMark, driver.AnyVersion))
		}
	}
	if w.Risky {
		w.Joins = desk.freshNames.mayShare()
		desk.Commits.SubmitApart(w)
	} else {
		desk.Commits.Submit(w)
	}
	return w
}

// setRefused reports whether a write failed because this client may not set a parent, and
// remembers that parent as one that is not to be set.
func (a Attempt) setRefused(w *session.Write, parents []parent) bool {
	desk := a.Desk
	if len(w.Results) != len(w.Ops) {
		return false
	}
	for i := range w.Ops {
		if w.Ops[i].Kind != driver.OpSet || !errors.Is(w.Results[i].Err, driver.ErrNoAuth) {
			continue
		}
		for j := range parents {
			if parents[j].path == w.Ops[i].Path {
				if parents[j].marked = false; !isUnmade(parents[j]) {
					desk.parents.add(parents[j])
				}
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

// SettleLocked implements session.Entry: it stores the results of a successful
// transaction in the place. children has each parent's count of children, -1 where that
// is not known. Zxid stays 0 if the driver does not report it and no parent was set. The
// session's Mu is held.
func (p *Place) SettleLocked(w *session.Write) (children []int32) {
	children = make([]int32, 0, len(p.nodes))
	for i := range w.Ops {
		switch w.Ops[i].Kind {
		case driver.OpCreate:
			if w.Ops[i].Mode == driver.Container {
				continue // a parent
			}
			p.nodes[len(children)].settleLocked(w.Results[i].Path)
			children = append(children, -1)
			p.Zxid = w.Results[i].Zxid
		case driver.OpSet:
			stat := &w.Results[i].Stat
			children[len(children)-1] = stat.NumChildren
			p.Zxid = stat.Mzxid
			p.parentCzxid = stat.Czxid
			p.Desk.parents.noteVersion(w.Ops[i].Path, stat.Version)
		}
	}
	return children
}

// created completes a place whose nodes exist: the place that it replaces was deleted
// by the same transaction, and accept checks the new one. seen is the transaction id of
// the newest creation that this client knew before this one.
func (a Attempt) created(ctx context.Context, p *Place, parents []parent, seen int64, children []int32) (_ *Place, alone bool, err error) {
	desk := p.Desk
	requeued := p.replaces != nil
	last := number(p)
	if p.parentCzxid == 0 && isProven(ctx, p) {
		children, p.parentCzxid = []int32{1}, p.before.czxid
	}
	p.limitChecked = requeued || len(children) > 0 && !slices.Contains(children, -1)
	if requeued {
		p.replaces.unregister()
		p.replaces = nil
	}
	if p.Zxid == 0 {
		err = a.readZxid(ctx, p)
	}
	desk.addMade(parents)
	if err == nil {
		limit := desk.cfg.MaxContenders
		if requeued {
			limit = 0 // max_contenders applies to the first enqueue only
		}
		err = a.accept(p, seen, last, children, limit)
	}
	if err != nil {
		p.Remove()
		return nil, false, err
	}
	alone = len(children) > 0
	for _, n := range children {
		alone = alone && n == 1
	}
	p.keepable = p.keepable && alone && !p.doubtful && (p.before == nil || follows(p))
	desk.Mu.Lock()
	p.others = !alone
	p.life.moveLocked(queued)
	desk.Mu.Unlock()
	if p.shown == 0 && !alone { // it was created as one that may be kept
		Describe(p, &a.Request.Origin)
	}
	return p, alone, nil
}

// readZxid reads the zxid of nodes created without a set, or found again.
func (a Attempt) readZxid(ctx context.Context, p *Place) error {
	desk := p.Desk
	var n driver.Node
	err := desk.Repeat(ctx, "recover", func(ctx context.Context) (err error) {
		n, err = desk.DS.Get(ctx, p.nodes[0].path())
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

// accept checks a place whose nodes exist: its sequence numbers, of which last is the largest,
// have to be usable, no queue may have more than limit contenders (0: no limit), and its
// transaction id, which becomes the token, has to be larger than seen.
func (a Attempt) accept(p *Place, seen, last int64, children []int32, limit int) error {
	desk := p.Desk
	if last >= queue.MaxSequence {
		return errs.ErrSequenceExhausted
	}
	for i := range p.nodes {
		if limit > 0 && i < len(children) && int(children[i]) > limit {
			return fmt.Errorf("%w: the queue already has max_contenders=%d contenders", errs.ErrTooManyWaiters, limit)
		}
	}
	if p.Zxid <= seen {
		desk.zxids.regressed.Store(true)
		return fmt.Errorf("%w: transaction %#x after %#x", errs.ErrTokenRegression, uint64(p.Zxid), uint64(seen))
	}
	for {
		newest := desk.zxids.newest.Load()
		if p.Zxid <= newest || desk.zxids.newest.CompareAndSwap(newest, p.Zxid) {
			return nil
		}
	}
}
