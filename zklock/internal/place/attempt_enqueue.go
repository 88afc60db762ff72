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
// waiter is the caller's context, and ctx also ends after connect_timeout. A create may outlast
// ctx while the session answers, because creates below one znode take a transaction each, and
// there may be thousands of them.
//
// On an error neither the new place nor replaces stays queued: each is being removed in
// the background, or its session is over.
func (a Attempt) enqueue(ctx, waiter context.Context, replaces *Place) (p *Place, alone bool, err error) {
	desk, r := a.Desk, a.Request
	const maxReaped = 8 // if the parent was removed this often in a row, that is not a coincidence
	began := lease.Now()
	for reaped := 0; ; {
		var parents []parent
		if parents, err = a.ensureParents(ctx, replaces != nil); err == nil {
			p, alone, err = a.create(ctx, waiter, parents, replaces)
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
func (a Attempt) create(ctx, waiter context.Context, parents []parent, replaces *Place) (*Place, bool, error) {
	desk, r := a.Desk, a.Request
	p, ok := newPlace(desk, r.Wants, r.Keep && replaces == nil && mayKeep(desk, r.Wants))
	if !ok {
		return nil, false, errs.ErrSessionOver
	}
	if p.replaces = replaces; replaces != nil {
		replaces.giveUp() // whatever the outcome, and before its nodes can be gone
	}
	c := creation{Attempt: a, p: p, parents: parents, waiter: waiter, began: lease.Now()}
	// Read before the first try: that try may turn out to have created the nodes.
	seen := desk.zxids.newest.Load()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, desk.Timeout/10) {
		applied, children, err := c.try(ctx, pause)
		switch {
		case err != nil:
			return nil, false, err
		case applied:
			return a.created(ctx, p, parents, seen, children)
		}
	}
}

// creation is the creation of a place's nodes, in as many tries as it takes.
type creation struct {
	Attempt
	p       *Place
	parents []parent        // as far as is known; a try may show that one is different
	waiter  context.Context // as in enqueue
	began   time.Time
	doubt   error // why the outcome of a try was unknown; nil: no outcome was
}

// try sends the transaction that creates the nodes once. applied says that the nodes exist;
// children is as in session.Write. If nothing was applied and err is nil, the next try may
// succeed. On an error the place has ended, or is being removed in the background.
func (c *creation) try(ctx context.Context, pause time.Duration) (applied bool, children []int32, err error) {
	w, err := c.send(ctx)
	if err != nil {
		return false, nil, err
	}
	switch err = w.Err; {
	case err == nil:
		return true, w.Children, nil
	case errors.Is(err, driver.ErrConnLoss):
		applied, err = c.lookFor(ctx, err)
		return applied, nil, err
	case session.Transient(err):
		return false, nil, c.sleep(ctx, w, pause)
	case c.Desk.Ended(err):
		return false, nil, errs.ErrSessionOver
	case c.setRefused(w, c.parents):
		// This client may not write that parent. The next try creates without the
		// set, and the queue is listed instead of counted.
		return false, nil, nil
	case isRefused(w, c.parents):
		err = c.Desk.makeRefused(ctx, w, c.parents)
	case !errors.Is(err, driver.ErrNoNode): // which enqueue deals with
		err = c.Desk.cfg.explain(err, c.Request.Wants[0].Path)
	}
	if err != nil {
		c.p.unregister() // certainly nothing was created
	}
	return false, nil, err
}

// send submits the creates, and waits for their outcome. If ctx ends first, the place is
// removed in the background.
func (c *creation) send(ctx context.Context) (*session.Write, error) {
	desk := c.Desk
	unclear := desk.freshNames.unclear.Load()
	w := c.submitCreate(ctx, c.p, c.parents)
	for {
		select {
		case <-w.Done:
			desk.freshNames.note(w, c.parents, unclear)
			return w, nil
		case <-desk.Ctx.Done():
			return nil, errs.ErrSessionOver
		case <-ctx.Done():
			more, cancel := desk.Patient(c.waiter, c.began) // the creates of others may come first
			defer cancel()
			if ctx = more; ctx.Err() == nil {
				continue
			}
			c.p.abandon(w, c.parents)
			return nil, because(desk.WaitEnded(ctx, c.began), c.doubt)
		}
	}
}

// lookFor finds out whether a try of which the outcome is unknown was applied. If it was not, the
// next try finds all znodes made: see the invariants of fresh names.
func (c *creation) lookFor(ctx context.Context, doubt error) (applied bool, err error) {
	c.p.doubtful, c.doubt = true, doubt
	if applied, err = c.p.recover(ctx); err != nil {
		c.p.abandon(nil, c.parents)
		return false, because(err, doubt)
	}
	if applied {
		return true, nil
	}
	if err = c.Desk.makeAll(ctx, c.parents); err != nil {
		c.p.unregister()
	}
	return false, err
}

// sleep pauses before the next try. If ctx or the session ends first, the place is removed in
// the background.
func (c *creation) sleep(ctx context.Context, w *session.Write, pause time.Duration) error {
	desk := c.Desk
	if session.Sleep(ctx, desk.cfg.Jitter(pause), desk.Ctx.Done()) {
		return nil
	}
	if !errors.Is(w.Err, driver.ErrNotSent) {
		w = nil // abandon looks for the nodes
	}
	c.p.abandon(w, c.parents)
	return desk.Interrupted(ctx, c.began)
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
// node. A parent that is unmade is created right before the node.
// The nodes of the place that p replaces are deleted first, so that they are not counted.
// ctx is that of the caller, which may give up.
func (a Attempt) submitCreate(ctx context.Context, p *Place, parents []parent) *session.Write {
	desk, r := a.Desk, a.Request
	cfg := desk.cfg
	w := &session.Write{Kind: "enqueue", Creates: p, Ctx: r.Ctx, Ops: make([]driver.Op, 0, 2*len(p.nodes)+1)}
	data := desk.nodeData(r.Origin, r.Mode, p.keepable).Encode()
	if p.replaces != nil {
		w.Kind = "requeue"
		for _, c := range p.replaces.nodes {
			w.Ops = append(w.Ops, driver.DeleteOp(c.path, driver.AnyVersion))
		}
	}
	for i, c := range p.nodes {
		if isUnmade(parents[i]) {
			w.Ops = append(w.Ops, driver.CreateOp(c.dir, parentMark, driver.Container, cfg.acls()))
			w.Risky, w.GivenUp = true, ctx.Done()
		}
		w.Ops = append(w.Ops, driver.CreateOp(c.dir+"/"+cfg.Dialect.Prefix(c.guid, c.kind), data, driver.EphemeralSequential, cfg.acls()))
		if parents[i].marked {
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
	if len(w.Results) != len(w.Ops) {
		return false
	}
	for i, op := range w.Ops {
		if op.Kind != driver.OpSet || !errors.Is(w.Results[i].Err, driver.ErrNoAuth) {
			continue
		}
		refused := &parents[slices.IndexFunc(parents, func(p parent) bool { return p.path == op.Path })]
		if refused.marked = false; !isUnmade(*refused) {
			a.Desk.parents.add(*refused)
		}
		return true
	}
	return false
}

// created completes a place whose nodes exist: the place that it replaces was deleted
// by the same transaction, and accept checks the new one. seen is the transaction id of
// the newest creation that this client knew before this one.
func (a Attempt) created(ctx context.Context, p *Place, parents []parent, seen int64, children []int32) (_ *Place, alone bool, err error) {
	desk := p.Desk
	requeued := p.replaces != nil
	last := p.lastNumber()
	limit := desk.cfg.MaxContenders // for new contenders only
	p.limitChecked = requeued || limit == 0 || len(children) > 0 && slices.Min(children) >= 0 && int(slices.Max(children)) <= limit
	if requeued {
		p.replaces.unregister()
		p.replaces = nil
	}
	if p.Zxid == 0 {
		err = a.readZxid(ctx, p)
	}
	desk.addMade(parents)
	if err == nil {
		err = a.accept(p, seen, last, children)
	}
	if err != nil {
		p.Remove()
		return nil, false, err
	}
	alone = len(children) > 0
	for _, n := range children {
		alone = alone && n == 1
	}
	for _, c := range p.nodes {
		longer := desk.noteUse(c.dir, last, alone && !p.doubtful && len(p.nodes) == 1)
		p.keepable = p.keepable && longer
	}
	desk.mu.Lock()
	p.others = !alone
	p.life.moveLocked(queued)
	desk.mu.Unlock()
	if p.shown == 0 && !alone { // it was created as one that may be kept
		p.Describe(&a.Request.Origin)
	}
	return p, alone, nil
}

// readZxid reads the zxid of nodes created without a set, or found again.
func (a Attempt) readZxid(ctx context.Context, p *Place) error {
	n, err := p.Desk.Read(ctx, "recover", p.nodes[0].path)
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
// have to be usable, no queue may have more contenders than max_contenders allows, and its
// transaction id, which becomes the token, has to be larger than seen. A queue that has one
// contender too many may have a kept place, which does not count: Place.listQueue finds out.
func (a Attempt) accept(p *Place, seen, last int64, children []int32) error {
	desk := p.Desk
	if last >= queue.MaxSequence {
		return errs.ErrSequenceExhausted
	}
	if !p.limitChecked && len(children) > 0 && int(slices.Max(children)) > desk.cfg.MaxContenders+1 {
		return desk.cfg.tooMany()
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
