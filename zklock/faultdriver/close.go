package faultdriver

import (
	"context"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Close ends the session underneath, whatever strikes: nothing else could end
// it, and its goroutines with it. A fault changes when that is, and what Close
// reports: any error, after which a caller has to reckon with ephemeral znodes
// that stay.
func (s *session) Close(ctx context.Context) error {
	if !s.retire() {
		select {
		case <-s.done:
			return s.outcome
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", driver.ErrConnLoss, ctx.Err())
		}
	}
	defer close(s.done)
	s.outcome = s.shut(ctx)
	return s.outcome
}

// retire reports whether this is the first Close, and sees to it that nothing
// is applied late from now on, except what has begun.
func (s *session) retire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	s.end()
	for g := range s.gates {
		g.forget(s)
	}
	s.gates = nil
	return true
}

// shut closes the session underneath and waits for all that runs in the
// background.
func (s *session) shut(ctx context.Context) error {
	op, f := s.faults.strike(Op{Kind: Close, Session: s.ID()}, s.tries.next)
	if f.action == delay {
		wait(ctx, f.wait, nil)
	}
	err := s.Session.Close(ctx)
	s.background.Wait()
	if err != nil {
		return err
	}
	var reported error
	switch f.action {
	case fail:
		reported = f.err
	case notSent:
		reported = driver.ErrNotSent
	case drop, loseReply:
		reported = driver.ErrConnLoss
	case hang, hangReply:
		reported = wait(ctx, forever, nil).lost()
	case delayReply:
		if ended := wait(ctx, f.wait, nil); !ended.elapsed {
			reported = ended.lost()
		}
	}
	if reported == nil {
		return nil
	}
	return &Error{Op: op, Fault: f, Err: reported}
}
