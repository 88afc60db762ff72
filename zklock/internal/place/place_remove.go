package place

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// The removal of queue nodes never runs on a caller's context: the usual reason for a
// removal is that a caller was cancelled. It runs until the nodes are gone or the
// session is over, also if the servers refuse it, and the session's end waits for it.

// Remove takes a place without a holder out of its queues, in the background. If its nodes are being
// created, that ends, and the place that they would replace is removed, too.
func (p *Place) Remove() {
	c := p.opening
	if c == nil {
		p.releaseAsync(p.Leave(p.Desk.Session.Context()), false)
		return
	}
	p.opening = nil
	c.abandon()
}

// Opening returns the write that creates the nodes of a place that no attempt has; nil if it is answered.
func (p *Place) Opening() *session.Write {
	if p.opening == nil {
		return nil
	}
	return p.opening.write()
}

// Leave gives a place up, and sends the first delete of its nodes. Release or ReleaseAsync follow. If a hold has
// the place, the write is not sent, and its error is errHeld.
func (p *Place) Leave(ctx context.Context) *session.Write {
	if err := p.giveUp(); err != nil {
		refused := &session.Write{Kind: "release", Err: err, Done: make(chan struct{})}
		close(refused.Done)
		return refused
	}
	w := &session.Write{Kind: "release", Ctx: ctx, Ops: p.deletes()}
	p.Desk.Session.Submit(w)
	return w
}

// deletes returns a delete for each node of the place whose path is known: recover does not find all if another client has deleted one.
func (p *Place) deletes() []driver.Op {
	ops := make([]driver.Op, 0, len(p.nodes))
	for _, c := range p.nodes {
		if c.path != "" {
			ops = append(ops, driver.DeleteOp(c.path, driver.AnyVersion))
		}
	}
	return ops
}

// ReleaseAsync is Place.Release without the wait: the nodes are deleted in the background.
func (p *Place) ReleaseAsync(w *session.Write) { p.releaseAsync(w, true) }

// releaseAsync deletes a place's nodes in the background, after the delete w. wasHeld has the log say if another
// program had deleted one before. Until the nodes are gone, tries of this client wait for that.
func (p *Place) releaseAsync(w *session.Write, wasHeld bool) {
	desk := p.Desk
	done := desk.parents.leaving(p.dirs())
	finish := func() {
		defer done()
		if p.finishDelete(w) == nil && wasHeld && errors.Is(w.Err, driver.ErrNoNode) {
			desk.cfg.Log().Warn("zklock: another program had deleted the queue node of a lock before it was released: the lock was lost, and its holder did not learn of it", "session", session.HexID(desk.Session.ID()))
		}
	}
	if !desk.Session.Spawn(finish) {
		done() // the session is over, and its nodes go with it
	}
}

// AwaitGone waits until the removals under way of the place's names are over, or their session is.
func (p *Place) AwaitGone(ctx context.Context) error {
	for _, path := range p.dirs() {
		for _, gone := range p.Desk.parents.left(path) {
			if err := p.Desk.Session.Await(ctx, gone); err != nil && !errors.Is(err, errs.ErrSessionOver) {
				return err
			}
		}
	}
	return nil
}

// Release takes a place that was held out of its queues. w is its first delete. It waits for the outcome until
// ctx ends, and at most for the time wait. deleted means that another program had
// already deleted a node. err is nil if the ensemble has confirmed that no node is
// left. Otherwise it matches ErrReleasePending, and its text has the reason.
//
// The end of the session needs no case in the selects: requests on the session's
// context are answered soon after that has ended.
func (p *Place) Release(ctx context.Context, w *session.Write, wait time.Duration) (deleted bool, err error) {
	desk := p.Desk
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-w.Done:
		deleted = errors.Is(w.Err, driver.ErrNoNode)
		if w.Err == nil || deleted && len(p.nodes) == 1 {
			p.released()
			return deleted, nil
		}
	case <-ctx.Done():
	case <-limit.C:
		limit.Reset(0) // for the next select
	}
	gone := make(chan error, 1)
	if !desk.Session.Spawn(func() { gone <- p.finishDelete(w) }) {
		return deleted, errs.ReleasePending(desk.Session.Cause())
	}
	select {
	case failed := <-gone:
		if errors.Is(failed, errs.ErrSessionOver) {
			failed = desk.Session.Cause()
		}
		return deleted, errs.ReleasePending(failed)
	case <-ctx.Done():
		return deleted, errs.ReleasePending(context.Cause(ctx))
	case <-limit.C:
		return deleted, errs.ErrReleasePending
	}
}

// finishDelete waits for the first delete, and goes on until the nodes are gone.
func (p *Place) finishDelete(w *session.Write) error {
	switch <-w.Done; w.Err {
	case nil:
		p.released()
		return nil
	case errHeld:
		return errHeld
	}
	return p.deleteNodes()
}

// deleteNodes deletes a place's nodes, and repeats each delete until the node is gone. An error means
// that the servers refuse one, for example without the right to delete: then deleteLater goes on, and the place
// stays registered, as its session's work. If the session is over, its nodes go with it.
func (p *Place) deleteNodes() error {
	left, err := p.deleteAll(p.nodes)
	switch {
	case err == nil:
		p.released()
		return nil
	case errors.Is(err, errs.ErrSessionOver):
		p.unregister()
		return err
	}
	p.Desk.cfg.Log().Error("zklock: a queue node could not be removed; other contenders wait for it until this client is allowed to, or its session ends", "session", session.HexID(p.Desk.Session.ID()), "cause", Logged(err))
	if !p.Desk.Session.Spawn(func() { p.deleteLater(left) }) {
		p.unregister()
	}
	return p.Desk.cfg.explain(err, left[0].path)
}

// deleteAll deletes nodes of the place. It returns those that the servers refuse to delete, and the first refusal.
func (p *Place) deleteAll(nodes []*ownNode) (left []*ownNode, refused error) {
	for _, c := range nodes {
		if c.node() == "" {
			continue // its node was never seen; if it appears, a lookout deletes it: see doubts
		}
		err := p.Desk.deleteNode(c.path)
		if errors.Is(err, errs.ErrSessionOver) {
			return nil, err
		}
		if err != nil {
			left = append(left, c)
			refused = cmp.Or(refused, err)
		}
	}
	return left, refused
}

// deleteLater repeats deletes that the servers have refused, more and more rarely: an operator may give this
// client the right again.
func (p *Place) deleteLater(left []*ownNode) {
	const first, most = time.Second, time.Minute
	for pause := first; session.Sleep(p.Desk.Session.Context(), p.Desk.cfg.Jitter(pause), nil); pause = min(2*pause, most) {
		var err error
		if left, err = p.deleteAll(left); err == nil {
			p.released()
			return
		}
		if errors.Is(err, errs.ErrSessionOver) {
			break
		}
	}
	p.unregister()
}

// released unregisters a place whose nodes are gone, and remembers that the ensemble has
// confirmed that on the place's session.
func (p *Place) released() {
	p.unregister()
	for _, c := range p.nodes {
		p.Desk.parents.known(c.dir, func(known *parent) { known.releasedOn = p.Desk.Session.ID() })
	}
}

// removeAfterLoss is Remove for a place that was lost while it was held, on a session
// that lives on: the nodes that were not deleted stay for loss_delay.
func (p *Place) removeAfterLoss() {
	desk, delay := p.Desk, p.Desk.cfg.LossDelay
	if delay == 0 || len(p.nodes) == 1 { // TestLossDelayKeepsTheOtherNodesOfAnAll
		p.Remove() // if there was one node, it is gone
		return
	}
	if p.giveUp() != nil {
		return
	}
	desk.Session.Spawn(func() {
		if session.Sleep(desk.Session.Context(), delay, nil) {
			_ = p.deleteNodes()
		}
	})
}
