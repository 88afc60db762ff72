package place

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// The removal of queue nodes never runs on a caller's context: the usual reason for a
// removal is that a caller was cancelled. It runs until the nodes are gone or the
// session is over, and the session's end waits for it.

// Remove takes a place without a holder out of its queues, in the background.
func (p *Place) Remove() { p.releaseAsync(p.Desk.Context(), false) }

// ReleaseAsync is Place.Release without the wait: the nodes are deleted in the background.
func (p *Place) ReleaseAsync(ctx context.Context) { p.releaseAsync(ctx, true) }

// releaseAsync deletes a place's nodes in the background. wasHeld has the log say if another
// program had deleted one before. Until the nodes are gone, tries of this client wait for that.
func (p *Place) releaseAsync(ctx context.Context, wasHeld bool) {
	desk, w := p.Desk, p.submitDelete(ctx)
	done := desk.parents.leaving(p.dirs())
	finish := func() {
		defer done()
		if p.finishDelete(w) == nil && wasHeld && errors.Is(w.Err, driver.ErrNoNode) {
			desk.cfg.Log().Warn("zklock: another program had deleted the queue node of a lock before it was released: the lock was lost, and its holder did not learn of it", "session", session.HexID(desk.ID()))
		}
	}
	if !desk.Spawn(finish) {
		done() // the session is over, and its nodes go with it
	}
}

// AwaitGone waits until the removals under way of the place's names are over, or their session is.
func (p *Place) AwaitGone(ctx context.Context) error {
	for _, path := range p.dirs() {
		for _, gone := range p.Desk.parents.left(path) {
			if err := p.Desk.Await(ctx, gone); err != nil && !errors.Is(err, errs.ErrSessionOver) {
				return err
			}
		}
	}
	return nil
}

// Release takes a place that was held out of its queues. It waits for the outcome until
// ctx ends, and at most for the time wait. deleted means that another program had
// already deleted a node. err is nil if the ensemble has confirmed that no node is
// left. Otherwise it matches ErrReleasePending, and its text has the reason.
//
// The end of the session needs no case in the selects: requests on the session's
// context are answered soon after that has ended.
func (p *Place) Release(ctx context.Context, wait time.Duration) (deleted bool, err error) {
	desk, w := p.Desk, p.submitDelete(ctx)
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
	if !desk.Spawn(func() { gone <- p.finishDelete(w) }) {
		return deleted, errs.ReleasePending(desk.Cause())
	}
	select {
	case failed := <-gone:
		if errors.Is(failed, errs.ErrSessionOver) {
			failed = desk.Cause()
		}
		return deleted, errs.ReleasePending(failed)
	case <-ctx.Done():
		return deleted, errs.ReleasePending(context.Cause(ctx))
	case <-limit.C:
		return deleted, errs.ErrReleasePending
	}
}

// submitDelete gives a place up and sends the first delete of its nodes.
func (p *Place) submitDelete(ctx context.Context) *session.Write {
	p.giveUp()
	w := &session.Write{Kind: "release", Ctx: ctx, Ops: make([]driver.Op, len(p.nodes))}
	for i, c := range p.nodes {
		w.Ops[i] = driver.DeleteOp(c.path, driver.AnyVersion)
	}
	p.Desk.Submit(w)
	return w
}

// finishDelete waits for the first delete, and goes on until the nodes are gone.
func (p *Place) finishDelete(w *session.Write) error {
	if <-w.Done; w.Err == nil {
		p.released()
		return nil
	}
	return p.deleteNodes()
}

// deleteNodes deletes a place's nodes, and repeats each delete until the node is gone. On an
// error a node stays until its session ends. The place then stays registered, as its session's
// work, if the session is not over.
func (p *Place) deleteNodes() error {
	for _, c := range p.nodes {
		if c.node() == "" {
			continue // its node was never seen; if it appears, a lookout deletes it: see doubts
		}
		err := p.Desk.deleteNode(c.path)
		if errors.Is(err, errs.ErrSessionOver) {
			p.unregister()
			return err
		}
		if err != nil {
			p.Desk.cfg.Log().Error("zklock: a queue node could not be removed; other contenders wait for it until its session ends", "session", session.HexID(p.Desk.ID()), "cause", Logged(err))
			return p.Desk.cfg.explain(err, c.path)
		}
	}
	p.released()
	return nil
}

// released unregisters a place whose nodes are gone, and remembers that the ensemble has
// confirmed that on the place's session.
func (p *Place) released() {
	p.unregister()
	for _, c := range p.nodes {
		p.Desk.parents.known(c.dir, func(known *parent) { known.releasedOn = p.Desk.ID() })
	}
}

// removeAfterLoss is Remove for a place that was lost while it was held, on a session
// that lives on: the nodes that were not deleted stay for loss_delay.
func (p *Place) removeAfterLoss() {
	desk, delay := p.Desk, p.Desk.cfg.LossDelay
	if delay == 0 || len(p.nodes) == 1 {
		p.Remove() // if there was one node, it is gone
		return
	}
	p.giveUp()
	desk.Spawn(func() {
		if session.Sleep(desk.Context(), delay, nil) {
			_ = p.deleteNodes()
		}
	})
}
