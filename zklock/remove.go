package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Removal of queue nodes. None of it runs on a caller's context: a caller that
// was cancelled is the usual reason for a removal. It runs until the node is
// gone or the session is, and the session's end waits for it.

// remove takes a contender out of the queue, in the background.
func (s *session) remove(c *contender) {
	s.spawn(func() { s.removeUntilGone(c, nil) })
}

// abandon is remove for a contender whose create may still be under way, as w,
// or may have had an unknown outcome.
func (s *session) abandon(c *contender, w *write) {
	s.client.cfg.logger.Debug("zklock: a queue node is being removed in the background")
	s.spawn(func() {
		if w != nil {
			<-w.done // soon: it runs on the session's context
			switch {
			case w.err == nil:
				s.settle(c, w)
			case errors.Is(w.err, driver.ErrConnLoss):
				c.doubtful = true
			default:
				s.finish(c) // surely not applied
				return
			}
		}
		s.mu.Lock()
		settled := c.node != ""
		s.mu.Unlock()
		if !settled {
			found, err := s.recover(s.ctx, c)
			for errors.Is(err, ErrUnavailable) {
				found, err = s.recover(s.ctx, c)
			}
			if !found {
				s.finish(c)
				return
			}
		}
		s.removeUntilGone(c, nil)
	})
}

// removeUntilGone deletes a contender's node. w, if not nil, is a delete that
// is under way.
func (s *session) removeUntilGone(c *contender, w *write) {
	if w != nil {
		<-w.done
	}
	if w == nil || w.err != nil && !errors.Is(w.err, driver.ErrNoNode) {
		if err := s.deleteNode(s.ctx, c.path()); err != nil {
			s.client.cfg.logger.Error("zklock: a queue node could not be removed; it stays until its session ends", "error", explain(err, c.path()))
			return // and stays registered, as the session's work
		}
	}
	s.finish(c)
}

// deleteNode deletes a node until it is gone. A node that does not exist is
// gone.
func (s *session) deleteNode(ctx context.Context, path string) error {
	for {
		err := s.repeat(ctx, "release", func(ctx context.Context) error {
			return s.ds.Delete(ctx, path, driver.AnyVersion)
		})
		switch {
		case err == nil, errors.Is(err, driver.ErrNoNode), errors.Is(err, errSessionOver):
			return nil
		case errors.Is(err, ErrUnavailable) && ctx.Err() == nil:
			continue // connect_timeout bounds calls, not clean-up
		}
		return err
	}
}

// release takes a held contender out of the queue and waits for the outcome, at
// most until ctx ends or a session timeout has passed.
func (s *session) release(ctx context.Context, c *contender) error {
	w := &write{kind: "release", dir: c.dir, ctx: ctx, ops: []driver.Op{driver.DeleteOp(c.path(), driver.AnyVersion)}}
	s.commits.submit(w)
	limit := time.NewTimer(s.timeout)
	defer limit.Stop()
	select {
	case <-w.done:
		switch {
		case w.err == nil:
			s.finish(c)
			return nil
		case errors.Is(w.err, driver.ErrNoNode):
			s.finish(c)
			return errNodeDeleted
		case !transient(w.err) && !s.ended(w.err):
			err := explain(w.err, c.path())
			s.client.cfg.logger.Error("zklock: a queue node could not be removed; it stays until its session ends", "error", err)
			return fmt.Errorf("%w: %w", ErrReleasePending, err)
		}
	case <-s.ends:
		return nil // the node goes with the session
	case <-ctx.Done():
		s.spawn(func() { s.removeUntilGone(c, w) })
		return fmt.Errorf("%w: %w", ErrReleasePending, context.Cause(ctx))
	case <-limit.C:
		s.spawn(func() { s.removeUntilGone(c, w) })
		return ErrReleasePending
	}
	gone := make(chan struct{})
	if !s.spawn(func() { defer close(gone); s.removeUntilGone(c, w) }) {
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-s.ends:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrReleasePending, context.Cause(ctx))
	case <-limit.C:
		return ErrReleasePending
	}
}

// sweep looks for late twins of creates with an unknown outcome, at once and
// again a session timeout later: a twin that nobody answers for would block the
// name until the session ends. The list deletes them.
func (s *session) sweep(dir string) {
	for i := range 2 {
		if i > 0 && !sleep(s.ctx, s.timeout, nil) {
			return
		}
		_ = s.repeat(s.ctx, "list", func(ctx context.Context) error {
			_, _, err := s.listOnce(ctx, dir)
			return err
		})
	}
}
