package place

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Removal of queue nodes. None of it runs on a caller's context: a caller that
// was cancelled is the usual reason for a removal. It runs until the nodes are
// gone or the session is, and the session's end waits for it.

// Remove takes a place out of its queues, in the background.
func (p *Place) Remove() {
	p.giveUp()
	p.Desk.cfg.Logger.Debug("zklock: a queue node is being removed in the background", "session", p.Desk.DS.ID())
	p.Desk.Spawn(func() { _ = removal{p}.untilGone() })
}

// removal is a place that is being removed, in the background.
type removal struct{ *Place }

// untilGone deletes a place's nodes. An error means that a node stays until
// its session ends; the place stays registered then, as the session's work, unless
// the session is over already.
func (p removal) untilGone() error {
	for _, c := range p.nodes {
		if c.node == "" {
			continue // never seen; a sweep deletes it should it show up
		}
		err := deleteNode(p.Desk, c.path())
		if errors.Is(err, errs.ErrSessionOver) {
			p.forget()
			return err
		}
		if err != nil {
			p.Desk.cfg.Logger.Error("zklock: a queue node could not be removed; it stays, and others wait for it, until its session ends", "session", p.Desk.DS.ID(), "cause", logged(err))
			return p.Desk.cfg.explain(err, c.path())
		}
	}
	p.forget()
	return nil
}

// deleteNode deletes a node until it is gone. A node that does not exist is gone.
// errs.ErrSessionOver means that it goes with its session.
func deleteNode(s *Desk, path string) error {
	err := s.Repeat(s.Ctx, "release", func(ctx context.Context) error {
		return s.DS.Delete(ctx, path, driver.AnyVersion)
	})
	if errors.Is(err, driver.ErrNoNode) {
		return nil
	}
	return err
}

// Release takes a place that was held out of its queues and waits for the
// outcome, at most until ctx ends or for as long as wait. deleted says that
// another program had deleted a node before. err is nil if the ensemble confirmed
// that no node is left, and else matches ErrReleasePending and what happened.
//
// The end of the session needs no case of its own: whatever runs on the session's
// context is answered soon after that has ended.
func (p *Place) Release(ctx context.Context, wait time.Duration) (deleted bool, err error) {
	s := p.Desk
	p.giveUp()
	w := &session.Write{Kind: "release", Ctx: ctx, Ops: make([]driver.Op, len(p.nodes))}
	for i, c := range p.nodes {
		w.Ops[i] = driver.DeleteOp(c.path(), driver.AnyVersion)
	}
	s.Commits.Submit(w)
	limit := time.NewTimer(wait)
	defer limit.Stop()
	// What the first try does not settle goes on in the background.
	var failed error
	finish := func() {
		if <-w.Done; w.Err == nil {
			p.forget()
			return
		}
		failed = removal{p}.untilGone()
	}
	select {
	case <-w.Done:
	case <-ctx.Done():
		s.Spawn(finish)
		return false, errs.ReleasePending(context.Cause(ctx))
	case <-limit.C:
		s.Spawn(finish)
		return false, errs.ErrReleasePending
	}
	deleted = errors.Is(w.Err, driver.ErrNoNode)
	if w.Err == nil || deleted && len(p.nodes) == 1 {
		p.forget()
		removal{p}.note()
		return deleted, nil
	}
	gone := make(chan struct{})
	if !s.Spawn(func() { defer close(gone); finish() }) {
		return deleted, errs.ReleasePending(s.Cause())
	}
	select {
	case <-gone:
		if errors.Is(failed, errs.ErrSessionOver) {
			failed = s.Cause()
		}
		if failed == nil {
			removal{p}.note()
		}
		return deleted, errs.ReleasePending(failed)
	case <-ctx.Done():
		return deleted, errs.ReleasePending(context.Cause(ctx))
	case <-limit.C:
		return deleted, errs.ErrReleasePending
	}
}

// note remembers that the ensemble has confirmed a release on this session.
func (p removal) note() {
	for _, c := range p.nodes {
		p.Desk.parents.noteRelease(c.dir, p.Desk.DS.ID())
	}
}

// lost is Remove for a place that was lost while it was held, on a session
// that lives on: what is left of its nodes stays for loss_delay.
func (p removal) lost() {
	s, delay := p.Desk, p.Desk.cfg.LossDelay
	if delay == 0 || len(p.nodes) == 1 {
		p.Remove() // of one node nothing is left
		return
	}
	p.giveUp()
	s.Spare()
	s.Spawn(func() {
		if session.Sleep(s.Ctx, delay, nil) {
			_ = p.untilGone()
		}
	})
}
