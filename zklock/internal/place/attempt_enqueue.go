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

// enqueue takes a place in the queue of every wanted name, usually in one round trip. replaces, if
// not nil, is a place whose nodes the same transaction deletes.
//
// alone means that the transaction proves that no other contender is in the queue: each
// parent's count of children, right after the create, was 1. A larger count proves
// nothing: the other children may be readers, or not be contenders at all.
//
// caller is the context of the acquisition, and ctx also ends after connect_timeout. A create may outlast
// ctx while the session answers, because creates below one znode take a transaction each, and
// there may be thousands of them.
//
// On an error neither the new place nor replaces stays queued: each is being removed in
// the background, or its session is over.
func (a Attempt) enqueue(ctx, caller context.Context, replaces *Place) (p *Place, alone bool, err error) {
	desk, r := a.Desk, a.Request
	const maxReaped = 8 // if the parent was removed this often in a row, that is not a coincidence
	began := lease.Now()
	for reaped := 0; ; {
		p, alone, err = a.create(ctx, caller, replaces)
		if err == nil {
			return p, alone, nil
		}
		if !errors.Is(err, driver.ErrNoNode) {
			break
		}
		// A parent was removed, as idle containers are, or the node to replace is gone. Nothing of
		// the transaction was applied.
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
		if !session.Sleep(ctx, desk.cfg.Jitter(time.Duration(reaped)*5*time.Millisecond), desk.Context().Done()) {
			err = desk.WaitEnded(ctx, began)
			break
		}
	}
	if replaces != nil {
		replaces.Remove()
	}
	return nil, false, err
}

// create creates the nodes of a new place, and finds out whether they exist when a
// reply is lost. If it fails, the caller removes replaces. Where the outcome is still unknown
// then, abandon ends replaces too, which is harmless.
func (a Attempt) create(ctx, caller context.Context, replaces *Place) (_ *Place, alone bool, err error) {
	desk, r := a.Desk, a.Request
	parents := make([]parent, len(r.Wants))
	for i, w := range r.Wants {
		if parents[i], err = (Znode{desk, w.Path}).ensure(ctx, replaces != nil); err != nil {
			return nil, false, err
		}
	}
	p, ok := newPlace(a.Session, r.Wants, r.Keep && replaces == nil && mayKeep(desk, r.Wants))
	if !ok {
		return nil, false, errs.ErrSessionOver
	}
	if replaces != nil {
		replaces.giveUp() // whatever the outcome, and before its nodes can be gone
	}
	c := creation{Attempt: a, p: p, replaces: replaces, parents: parents, caller: caller, began: lease.Now()}
	// Read before the first try: that try may turn out to have created the nodes.
	seen := desk.Newest()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, desk.Timeout()/10) {
		applied, children, err := c.try(ctx, pause)
		switch {
		case err != nil:
			return nil, false, err
		case applied:
			return c.created(ctx, seen, children)
		}
	}
}

// creation is the creation of a place's nodes, in as many tries as it takes.
type creation struct {
	Attempt
	p        *Place
	replaces *Place          // the place whose nodes the same transaction deletes; nil if none
	parents  []parent        // as far as is known; a try may show that one is different
	caller   context.Context // as in enqueue
	began    time.Time
	doubt    error // why the outcome of a try was unknown; nil: no outcome was
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
		applied, err = c.lookFor(ctx, w)
		return applied, nil, err
	case session.Transient(err):
		if session.Sleep(ctx, c.Desk.cfg.Jitter(pause), c.Desk.Context().Done()) {
			return false, nil, nil
		}
		c.abandon(w)
		return false, nil, c.Desk.WaitEnded(ctx, c.began)
	case c.Desk.Ended(err):
		return false, nil, errs.ErrSessionOver
	case c.setRefused(w):
		return false, nil, nil // the next try creates without the set, and the queue is listed instead of counted
	case isRefused(w):
		err = c.Desk.adoptRefused(ctx, w, c.parents)
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
	w := c.submit(ctx)
	for {
		select {
		case <-w.Done:
			desk.freshNames.note(w, unclear)
			return w, nil
		case <-desk.Context().Done():
			return nil, errs.ErrSessionOver
		case <-ctx.Done():
			more, cancel := desk.Patient(c.caller, c.began) // the creates of others may come first
			defer cancel()
			if ctx = more; ctx.Err() == nil {
				continue
			}
			c.abandon(w)
			return nil, c.because(desk.WaitEnded(ctx, c.began))
		}
	}
}

// lookFor finds out whether a try with an unknown outcome was applied. If it was not, the next try
// finds all znodes made: see the invariants of fresh names.
func (c *creation) lookFor(ctx context.Context, w *session.Write) (applied bool, err error) {
	c.p.doubtful, c.doubt = true, w.Err
	c.Desk.doubt(c.p.dirs(), false) // recover lists now
	if applied, err = c.p.recover(ctx); err != nil {
		c.abandon(w)
		return false, c.because(err)
	}
	if applied {
		return true, nil
	}
	if err = c.Desk.makeAll(ctx, c.parents); err != nil {
		c.p.unregister()
	}
	return false, err
}

// because adds to the error of a wait without a session, as text, what happened to the last try: a
// server that cuts the connection of each try may not accept the request.
func (c *creation) because(err error) error {
	if c.doubt == nil || !errors.Is(err, errs.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %v", err, c.doubt)
}

// submit sends the creates of the place. Each is followed by a set of its parent, if the
// parent has our mark: the set's reply has the count of the queue's nodes, with our own node,
// since the create is in front of it. A parent that is unmade is created right before the node.
// The nodes of the place that this one replaces are deleted first, so that they are not counted.
// ctx is that of the caller, which may give up.
func (c *creation) submit(ctx context.Context) *session.Write {
	desk, r, p := c.Desk, c.Request, c.p
	cfg := desk.cfg
	w := &session.Write{Kind: "enqueue", Creates: p, Ctx: r.Ctx, Ops: make([]driver.Op, 0, 2*len(p.nodes)+1)}
	described := r.data(cfg, p.keepable)
	described.SendAt(time.Now().UnixMilli())
	data := described.Encode()
	if c.replaces != nil {
		w.Kind = "requeue"
		for _, n := range c.replaces.nodes {
			w.Ops = append(w.Ops, driver.DeleteOp(n.path, driver.AnyVersion))
		}
	}
	for i, n := range p.nodes {
		if isUnmade(c.parents[i]) {
			w.Ops = append(w.Ops, driver.CreateOp(n.dir, parentMark, driver.Container, cfg.ACL))
			w.Risky, w.GivenUp = true, ctx.Done()
		}
		w.Ops = append(w.Ops, driver.CreateOp(n.dir+"/"+cfg.Dialect.Prefix(n.guid, n.kind), data, driver.EphemeralSequential, cfg.ACL))
		if c.parents[i].marked {
			w.Ops = append(w.Ops, driver.SetOp(n.dir, parentMark, driver.AnyVersion))
		}
	}
	if w.Risky {
		w.Joins = desk.freshNames.mayShare()
	}
	desk.Submit(w)
	return w
}

// setRefused reports whether a write failed because this client may not set a parent, and
// remembers that parent as one that is not to be set.
func (c *creation) setRefused(w *session.Write) bool {
	at := session.AtFault(w.Results)
	if at < 0 || w.Ops[at].Kind != driver.OpSet || !errors.Is(w.Err, driver.ErrNoAuth) {
		return false
	}
	refused := &c.parents[slices.IndexFunc(c.parents, func(p parent) bool { return p.path == w.Ops[at].Path })]
	if refused.marked = false; !isUnmade(*refused) {
		c.Desk.parents.add(*refused)
	}
	return true
}

// created completes a place whose nodes exist. The same transaction has deleted the place that it
// replaces. seen is the transaction id of the newest creation that this client knew before.
func (c *creation) created(ctx context.Context, seen int64, children []int32) (_ *Place, alone bool, err error) {
	desk, p := c.Desk, c.p
	last, limit := p.lastNumber(), desk.cfg.MaxContenders // a limit for new contenders only
	p.limitChecked = c.replaces != nil || limit == 0 || len(children) > 0 && slices.Min(children) >= 0 && int(slices.Max(children)) <= limit
	if c.replaces != nil {
		c.replaces.unregister()
	}
	if p.Zxid == 0 { // it was created without a set, or found again
		var n driver.Node
		n, err = desk.Read(ctx, "recover", p.nodes[0].path)
		if p.Zxid = n.Stat.Czxid; errors.Is(err, driver.ErrNoNode) {
			err = errs.ErrNodeGone
		}
	}
	desk.addMade(c.parents)
	if err == nil {
		err = p.accept(seen, last, children)
	}
	if err != nil {
		p.Remove()
		return nil, false, err
	}
	alone = len(children) > 0 && slices.Min(children) == 1 && slices.Max(children) == 1
	for _, n := range p.nodes {
		longer := desk.noteUse(n.dir, last, alone && !p.doubtful && len(p.nodes) == 1)
		p.keepable = p.keepable && longer
	}
	desk.mu.Lock()
	p.others = !alone
	p.life.moveLocked(queued)
	desk.mu.Unlock()
	if p.shown == 0 && !alone { // it was created as one that may be kept
		p.Describe(&c.Request.Origin)
	}
	return p, alone, nil
}

// accept checks a place whose nodes exist: its sequence numbers, up to last,
// must be usable, no queue may have more contenders than max_contenders allows, and its
// transaction id, which becomes the token, must be larger than seen. A queue that has one
// contender too many may have a kept place, which does not count: Place.listQueue finds out.
func (p *Place) accept(seen, last int64, children []int32) error {
	desk := p.Desk
	if last >= queue.MaxSequence {
		return errs.ErrSequenceExhausted
	}
	if !p.limitChecked && len(children) > 0 && int(slices.Max(children)) > desk.cfg.MaxContenders+1 {
		return desk.cfg.tooMany()
	}
	return desk.Note(seen, p.Zxid)
}
