package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Term is one term of office: a lock that is held exclusively. It ends when it is resigned
// or when the lock is lost, and never begins again. Its Valid looks at the clock and not at
// what was true before. A Term is safe for concurrent use.
type Term struct {
	*zklock.Lock

	client *zklock.Client
}

// SetValue replaces the value that others read of the leader, until the end of the term. An
// invalid value fails as [WithValue] describes, and leaves the former. Other errors are those
// of [zklock.Lock.SetLabel]: they do not end the term.
func (t *Term) SetValue(ctx context.Context, value string) error {
	if t == nil || t.Lock == nil {
		return fmt.Errorf("election: value: %w", errNoTerm)
	}
	if err := checkValue(value); err != nil {
		return fmt.Errorf("election: value of %q: %w", t.Name(), err)
	}
	return t.SetLabel(ctx, value)
}

// Resign ends the term. The candidate ceases to lead when Resign is called. Resign returns nil
// when the ensemble has confirmed that the term's node is gone, so that another candidate can
// lead. If the confirmation is missing when ctx ends, or after a session timeout, the error
// matches [zklock.ErrReleasePending]: the client goes on removing the node in the background.
// If a lock of this process has joined the term with [zklock.Reenter], the first Resign returns
// nil at once, and the release of that lock removes the node.
//
// Resign may be called again, and after Release. Then it waits for the confirmation, if
// there was none yet. If the term was lost before it was resigned, the error matches
// [zklock.ErrLost].
func (t *Term) Resign(ctx context.Context) error {
	if t == nil || t.Lock == nil {
		return fmt.Errorf("election: resign: %w", errNoTerm)
	}
	err := t.Release(ctx)
	if !errors.Is(err, zklock.ErrReleased) {
		return err
	}
	if lost := t.Err(); errors.Is(lost, zklock.ErrLost) {
		return lost
	}
	return t.awaitGone(ctx)
}

// errNoTerm is the error for a zero Term.
var errNoTerm = misuse("the Term was not made by Campaign or Run")

// awaitGone waits until the node of a term that was resigned before is gone.
func (t *Term) awaitGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.SessionTimeout())
	defer cancel()
	var why error
	for contenders, err := range t.client.Watch(ctx, t.Name()) {
		if err == nil && !t.among(contenders) {
			return nil
		}
		why = err
	}
	return fmt.Errorf("election: resign %q: %w", t.Name(), errs.ReleasePending(why))
}

// among reports whether the term's node is one of those of contenders.
func (t *Term) among(contenders []zklock.Contender) bool {
	for _, c := range contenders {
		if c.Zxid == t.Token().Zxid {
			return true
		}
	}
	return false
}
