package faultdriver

import (
	"context"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Close ends the wrapped session, whatever the fault is: otherwise the session and its
// goroutines could not be ended at all. A fault changes only when that happens, and which
// error Close returns. After any error a caller must assume that the session's ephemeral znodes
// may stay.
func (s *session) Close(ctx context.Context) error {
	if !s.retire() { // the first call's context bounds this wait, too
		<-s.done
		return s.outcome
	}
	defer close(s.done)
	s.outcome = s.shut(ctx)
	return s.outcome
}

// retire returns true for the first Close. From then on no request is applied late, except
// for those that have begun.
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

// shut closes the wrapped session and waits for everything that runs in the background.
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
	return &struckError{Op: op, Fault: f, Err: reported}
}
