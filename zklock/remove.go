package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Removal of queue nodes. None of it runs on a caller's context: a caller that
// was cancelled is the usual reason for a removal. It runs until the nodes are
// gone or the session is, and the session's end waits for it.

// remove takes a place out of its queues, in the background.
func (p *place) remove() {
	p.giveUp()
	p.s.cfg.logger.Debug("zklock: a queue node is being removed in the background", "session", p.s.ds.ID())
	p.s.spawn(func() { _ = p.removeUntilGone() })
}

// abandon is remove for a place whose creation may still be under way, as w, or
// may have had an unknown outcome. What it replaces is given up with it.
func (p *place) abandon(w *write) {
	s := p.s
	p.giveUp()
	s.spawn(func() {
		applied, known := p.settled(), false
		if w != nil {
			<-w.done // soon: it runs on the session's context
			switch {
			case w.err == nil:
				applied, known = true, true
			case errors.Is(w.err, driver.ErrConnLoss):
				p.doubtful = true
			default:
				known = true // surely not applied
			}
		}
		if !applied && !known {
			found, _ := p.recover(s.ctx)
			applied = found || p.settled()
		}
		if old := p.replaces; old != nil {
			p.replaces = nil
			if applied {
				old.finish()
			} else {
				old.remove()
			}
		}
		if applied {
			_ = p.removeUntilGone()
		} else {
			p.finish()
		}
	})
}

// removeUntilGone deletes a place's nodes. An error means that a node stays until
// its session ends; the place stays registered then, as the session's work, unless
// the session is over already.
func (p *place) removeUntilGone() error {
	for _, c := range p.nodes {
		if c.node == "" {
			continue // never seen; a sweep deletes it should it show up
		}
		err := deleteNode(p.s, c.path())
		if errors.Is(err, errs.SessionOver) {
			p.finish()
			return err
		}
		if err != nil {
			p.s.cfg.logger.Error("zklock: a queue node could not be removed; it stays, and others wait for it, until its session ends", "session", p.s.ds.ID(), "cause", logged(err))
			return p.s.cfg.explain(err, c.path())
		}
	}
	p.finish()
	return nil
}

// deleteNode deletes a node until it is gone. A node that does not exist is gone.
// errSessionOver means that it goes with its session.
func deleteNode(s *desk, path string) error {
	err := s.repeat(s.ctx, "release", func(ctx context.Context) error {
		return s.ds.Delete(ctx, path, driver.AnyVersion)
	})
	if errors.Is(err, driver.ErrNoNode) {
		return nil
	}
	return err
}

// release takes a place that was held out of its queues and waits for the
// outcome, at most until ctx ends or for as long as wait. deleted says that
// another program had deleted a node before. err is nil if the ensemble confirmed
// that no node is left, and else matches ErrReleasePending and what happened.
//
// The end of the session needs no case of its own: whatever runs on the session's
// context is answered soon after that has ended.
func (p *place) release(ctx context.Context, wait time.Duration) (deleted bool, err error) {
	s := p.s
	p.giveUp()
	w := &write{kind: "release", ctx: ctx, ops: make([]driver.Op, len(p.nodes))}
	for i, c := range p.nodes {
		w.ops[i] = driver.DeleteOp(c.path(), driver.AnyVersion)
	}
	s.commits.submit(w)
	limit := time.NewTimer(wait)
	defer limit.Stop()
	// What the first try does not settle goes on in the background.
	var failed error
	finish := func() {
		if <-w.done; w.err == nil {
			p.finish()
			return
		}
		failed = p.removeUntilGone()
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		s.spawn(finish)
		return false, releasePending(context.Cause(ctx))
	case <-limit.C:
		s.spawn(finish)
		return false, errs.ReleasePending
	}
	deleted = errors.Is(w.err, driver.ErrNoNode)
	if w.err == nil || deleted && len(p.nodes) == 1 {
		p.finish()
		return deleted, nil
	}
	gone := make(chan struct{})
	if !s.spawn(func() { defer close(gone); finish() }) {
		return deleted, releasePending(s.cause())
	}
	select {
	case <-gone:
		if errors.Is(failed, errs.SessionOver) {
			failed = s.cause()
		}
		return deleted, releasePending(failed)
	case <-ctx.Done():
		return deleted, releasePending(context.Cause(ctx))
	case <-limit.C:
		return deleted, errs.ReleasePending
	}
}

// releasePending is the ErrReleasePending of a release that something kept from
// being confirmed; nil if nothing did.
func releasePending(why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errs.ReleasePending, why)
}

// removeLost is remove for a place that was lost while it was held, on a session
// that lives on: what is left of its nodes stays for loss_delay.
func (p *place) removeLost() {
	s, delay := p.s, p.s.cfg.lossDelay
	if delay == 0 || len(p.nodes) == 1 {
		p.remove() // of one node nothing is left
		return
	}
	p.giveUp()
	s.spare()
	s.spawn(func() {
		if sleep(s.ctx, delay, nil) {
			_ = p.removeUntilGone()
		}
	})
}
