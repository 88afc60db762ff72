package place

import (
	"context"
	"errors"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// blocked returns the error of a try that would have to wait for a contender in a
// queue; nil if it would not. It writes nothing. recalls means that only places are ahead that
// their clients may keep, and give up when another contender arrives.
//
// blocked waits for releases of this client that are not confirmed, because their callers do not
// wait for that. If this client has released the name on another session, this one's server may
// still show the node, so a Sync comes first.
func (a Attempt) blocked(ctx context.Context) (recalls bool, err error) {
	desk, r := a.Desk, a.Request
	for _, want := range r.Wants {
		z := Znode{desk, want.Path}
		if left := desk.parents.left(want.Path); left != nil {
			if err := desk.Await(ctx, left); err != nil {
				return false, err
			}
		}
		if id := desk.parents.get(want.Path).releasedOn; id != 0 && id != desk.DS.ID() {
			if err := z.Sync(ctx); err != nil && !errors.Is(err, driver.ErrNoNode) {
				return false, err
			}
		}
		q, err := z.list(ctx)
		if errors.Is(err, driver.ErrNoNode) {
			continue
		}
		if err != nil {
			return false, desk.cfg.explainList(err, want.Path)
		}
		// As for Acquire: a node whose sequence number is at the end of the range is
		// ordered behind every new contender.
		q = slices.DeleteFunc(q, func(c queue.Node) bool { return c.Seq >= queue.MaxSequence })
		q = append(q, queue.Node{Kind: want.Kind})
		if other, ok := queue.Conflict(q, len(q)-1); ok {
			return false, queue.KindConflict(other)
		}
		position, ahead, err := z.blockedBy(ctx, want.Kind, q)
		switch {
		case err != nil:
			return false, err
		case position == 1 && ahead.MayBeKept():
			recalls = true
		case position > 0:
			r.By.Waits(position, ahead)
			return false, errs.ErrTaken
		}
	}
	return recalls, nil
}
