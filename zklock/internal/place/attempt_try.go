package place

import (
	"context"
	"errors"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// blocked returns the error of a try that would have to wait for a contender in a
// queue; nil if it would not. recalls means that it would have to wait only for places that
// their clients may keep while they do not use them: a client gives such a place up when
// another contender arrives. It writes nothing. This session's server may still show a
// node that this client released on another session, so in that case a Sync comes
// before the list. It waits for a release of this client that is not confirmed yet because
// its caller does not wait for that.
func (a Attempt) blocked(ctx context.Context) (recalls bool, err error) {
	desk, r := a.Desk, a.Request
	for _, want := range r.Wants {
		if left := desk.parents.left(want.Path); left != nil {
			began := lease.Now()
			select {
			case <-left:
			case <-ctx.Done():
				return false, desk.WaitEnded(ctx, began)
			case <-desk.Ctx.Done():
				return false, errs.ErrSessionOver
			}
		}
		if id := desk.parents.releasedOn(want.Path); id != 0 && id != desk.DS.ID() {
			err := desk.Repeat(ctx, "sync", func(ctx context.Context) error { return desk.DS.Sync(ctx, want.Path) })
			if err != nil && !errors.Is(err, driver.ErrNoNode) {
				return false, err
			}
		}
		q, err := Znode{desk, want.Path}.list(ctx)
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
		position, ahead, err := Znode{desk, want.Path}.blockedBy(ctx, want.Kind, q)
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
