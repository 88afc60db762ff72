package interceptors

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// errNotHeld is the error of a lock that was lost between its grant and the beginning of
// the work, if the release did not return a loss.
var errNotHeld = &zklock.LostError{Cause: errors.New("it was lost before the call began")}

// work is what a call does while it holds its lock. The types that implement it embed
// their section, so that a call needs one allocation.
type work interface {
	// do does the work. Its error is the call's if the lock was not lost.
	do(ctx context.Context) error
}

// section is one call that holds a lock from beginning to end.
type section struct {
	*config
	call    Call
	work    work
	limit   served.Limit // the zero one on clients
	checks  bool         // check sequencers again after the wait
	lock    *zklock.Lock // set before the work is begun
	entered bool         // work was begun
	err     error        // the work's
}

// hold does the work while a is held. It returns the work's error, or one whose status
// describes the failure of the lock.
func (s *section) hold(ctx context.Context, a zklock.Acquirer) error {
	a, opts := s.acquisition(ctx, s.call, a, s.limit)
	err := zklock.Do(ctx, a, s.run, opts...)
	switch {
	case s.entered:
		return s.failures.Settle(s.err, err)
	case err == nil:
		err = errNotHeld
	}
	return s.refuse(ctx, s.call, err)
}

// run does the work while the lock is held. It returns an error only if
// the work was not begun. The work's error is in s.err, so that it is not taken for an
// error of the lock.
func (s *section) run(ctx context.Context, lock *zklock.Lock) error {
	if !lock.Valid() {
		return nil // lost after its grant: Do notices that when it releases the lock
	}
	if s.checks {
		// The guard may have seen a newer holder during the wait.
		if err := s.checkSequencers(ctx, s.call); err != nil {
			return err
		}
	}
	if s.maxHold > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.maxHold, zklock.ErrMaxHold)
		defer cancel()
	}
	s.lock, s.entered = lock, true
	s.err = s.work.do(ctx)
	return nil
}
