package interceptors

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock"
)

// errNotHeld is the cause of a loss between the grant and the handler, if the
// release knew nothing of it.
var errNotHeld = &zklock.LostError{Cause: errors.New("it was not held any more when its turn came")}

// work is what a call has to do under its lock. The kinds of calls that have
// some embed their section, so that a call is one allocation.
type work interface {
	// do does it. Its error is the call's, unless the lock was lost.
	do(ctx context.Context) error
}

// section is one call that runs from beginning to end under a lock.
type section struct {
	*config
	call    Call
	work    work
	outer   *zklock.Lock // the innermost lock that the context carried before
	checks  bool         // sequencers, once more
	entered bool         // work was begun
	err     error        // the work's
}

// hold does the work while a is held, and returns its error or one with a status
// that says what went wrong with the lock.
func (s *section) hold(ctx context.Context, a zklock.Acquirer) error {
	s.outer, _ = zklock.FromContext(ctx)
	a, opts := s.acquisition(ctx, s.call, a)
	err := zklock.Do(ctx, a, s.run, opts...)
	switch {
	case s.entered:
		return settle(s.err, err)
	case err == nil:
		err = errNotHeld
	}
	return s.refuse(ctx, err)
}

// run does the work, under the lock that ctx carries. Its own error is for calls
// that do not get so far: the work's must not be taken for one of the lock's.
func (s *section) run(ctx context.Context) error {
	if lock, ok := zklock.FromContext(ctx); !ok || lock == s.outer {
		// Ours is not among the live ones: it was lost between its grant and
		// here. Do finds that out when it releases it.
		return nil
	}
	if s.checks {
		// Again, since somebody newer may have been here while we waited.
		if err := s.checkSequencers(ctx, s.call); err != nil {
			return err
		}
	}
	if s.maxHold > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.maxHold, zklock.ErrMaxHold)
		defer cancel()
	}
	s.entered = true
	s.err = s.work.do(ctx)
	return nil
}
