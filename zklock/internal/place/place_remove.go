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

// Remove takes a place out of its queues, in the background.
func (p *Place) Remove() {
	p.giveUp()
	p.Desk.cfg.Logger.Debug("zklock: a queue node is being removed in the background", "session", session.HexID(p.Desk.DS.ID()))
	p.Desk.Spawn(func() { _ = deleteNodes(p) })
}

// deleteNodes deletes a place's nodes and unregisters the place. On an error a node
// stays until its session ends. The place then stays registered, as its session's work,
// unless the session is already over.
func deleteNodes(p *Place) error {
	for _, c := range p.nodes {
		if c.node() == "" {
			continue // its node was never seen; if it appears, a sweep deletes it
		}
		err := deleteNode(p.Desk, c.path())
		if errors.Is(err, errs.ErrSessionOver) {
			p.unregister()
			return err
		}
		if err != nil {
			p.Desk.cfg.Logger.Error("zklock: a queue node could not be removed; other contenders wait for it until its session ends", "session", session.HexID(p.Desk.DS.ID()), "cause", logged(err))
			return p.Desk.cfg.explain(err, c.path())
		}
	}
	p.unregister()
	return nil
}

// deleteNode repeats the delete of a node until the node is gone. A node that does not
// exist is gone. errs.ErrSessionOver means that the node goes with its session.
func deleteNode(desk *Desk, path string) error {
	err := desk.Repeat(desk.Ctx, "release", func(ctx context.Context) error {
		return desk.DS.Delete(ctx, path, driver.AnyVersion)
	})
	if errors.Is(err, driver.ErrNoNode) {
		return nil
	}
	return err
}

// Release takes a place that was held out of its queues. It waits for the outcome until
// ctx ends, and at most for the time wait. deleted means that another program had
// already deleted a node. err is nil if the ensemble has confirmed that no node is
// left. Otherwise it matches ErrReleasePending, and its text has the reason.
//
// The end of the session needs no case in the selects: requests on the session's
// context are answered soon after that has ended.
func (p *Place) Release(ctx context.Context, wait time.Duration) (deleted bool, err error) {
	desk := p.Desk
	w := submitDelete(ctx, p)
	limit := time.NewTimer(wait)
	defer limit.Stop()
	// finish goes on in the background if the first try fails, or is not answered in
	// time.
	var failed error
	finish := func() { failed = finishDelete(p, w) }
	select {
	case <-w.Done:
	case <-ctx.Done():
		desk.Spawn(finish)
		return false, errs.ReleasePending(context.Cause(ctx))
	case <-limit.C:
		desk.Spawn(finish)
		return false, errs.ErrReleasePending
	}
	deleted = errors.Is(w.Err, driver.ErrNoNode)
	if w.Err == nil || deleted && len(p.nodes) == 1 {
		p.unregister()
		noteRelease(p)
		return deleted, nil
	}
	gone := make(chan struct{})
	if !desk.Spawn(func() { defer close(gone); finish() }) {
		return deleted, errs.ReleasePending(desk.Cause())
	}
	select {
	case <-gone:
		if errors.Is(failed, errs.ErrSessionOver) {
			failed = desk.Cause()
		}
		if failed == nil {
			noteRelease(p)
		}
		return deleted, errs.ReleasePending(failed)
	case <-ctx.Done():
		return deleted, errs.ReleasePending(context.Cause(ctx))
	case <-limit.C:
		return deleted, errs.ErrReleasePending
	}
}

// ReleaseAsync is Place.Release without the wait: the nodes are deleted in the background.
func ReleaseAsync(ctx context.Context, p *Place) {
	releaseAsync(ctx, p, func() {
		p.Desk.cfg.Logger.Warn("zklock: another program had deleted the queue node of a lock before it was released: the lock was lost, and its holder did not learn of it", "session", session.HexID(p.Desk.DS.ID()))
	})
}

// ReleaseKept is ReleaseAsync for a place that was kept, and so had no holder.
func ReleaseKept(p *Place) { releaseAsync(p.Desk.Ctx, p, func() {}) }

// releaseAsync deletes a place's nodes in the background. It calls deleted if another program
// had deleted one before. Until the nodes are gone, tries of this client wait for that.
func releaseAsync(ctx context.Context, p *Place, deleted func()) {
	w := submitDelete(ctx, p)
	paths := make([]string, len(p.nodes))
	for i, c := range p.nodes {
		paths[i] = c.dir
	}
	done := p.Desk.parents.leaving(paths)
	finish := func() {
		defer done()
		if finishDelete(p, w) != nil {
			return
		}
		noteRelease(p)
		if errors.Is(w.Err, driver.ErrNoNode) {
			deleted()
		}
	}
	if !p.Desk.Spawn(finish) {
		done() // the session is over, and its nodes go with it
	}
}

// submitDelete gives a place up and sends the first delete of its nodes.
func submitDelete(ctx context.Context, p *Place) *session.Write {
	p.giveUp()
	w := &session.Write{Kind: "release", Ctx: ctx, Ops: make([]driver.Op, len(p.nodes))}
	for i, c := range p.nodes {
		w.Ops[i] = driver.DeleteOp(c.path(), driver.AnyVersion)
	}
	p.Desk.Commits.Submit(w)
	return w
}

// finishDelete waits for the first delete, and goes on until the nodes are gone.
func finishDelete(p *Place, w *session.Write) error {
	if <-w.Done; w.Err == nil {
		p.unregister()
		return nil
	}
	return deleteNodes(p)
}

// noteRelease remembers that the ensemble has confirmed a release on the place's session.
func noteRelease(p *Place) {
	for _, c := range p.nodes {
		p.Desk.parents.noteRelease(c.dir, p.Desk.DS.ID())
	}
}

// removeAfterLoss is Remove for a place that was lost while it was held, on a session
// that lives on: the nodes that were not deleted stay for loss_delay.
func removeAfterLoss(p *Place) {
	desk, delay := p.Desk, p.Desk.cfg.LossDelay
	if delay == 0 || len(p.nodes) == 1 {
		p.Remove() // if there was one node, it is gone
		return
	}
	p.giveUp()
	desk.Spare()
	desk.Spawn(func() {
		if session.Sleep(desk.Ctx, delay, nil) {
			_ = deleteNodes(p)
		}
	})
}
