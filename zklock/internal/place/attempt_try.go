package place

import (
	"context"
	"errors"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// blocked answers a try without a write: somebody in the queue has to be waited
// for. What this client itself released on another session may still show on
// this one's server, so that is caught up with first.
func (a Attempt) blocked(ctx context.Context) error {
	s, r := a.Desk, a.Request
	for _, want := range r.Wants {
		if id := s.parents.releasedOn(want.Path); id != 0 && id != s.DS.ID() {
			err := s.Repeat(ctx, "sync", func(ctx context.Context) error { return s.DS.Sync(ctx, want.Path) })
			if err != nil && !errors.Is(err, driver.ErrNoNode) {
				return err
			}
		}
		q, err := Znode{s, want.Path}.list(ctx)
		if errors.Is(err, driver.ErrNoNode) {
			continue
		}
		if err != nil {
			return s.cfg.explainList(err, want.Path)
		}
		// Like Acquire: those at the end of all numbers are behind every contender that comes.
		q = slices.DeleteFunc(q, func(c queue.Node) bool { return c.Seq >= queue.MaxSequence })
		q = append(q, queue.Node{Kind: want.Kind})
		if other, ok := queue.Conflict(q, len(q)-1); ok {
			return queue.KindConflict(other)
		}
		if err := (Znode{s, want.Path}).blockedBy(ctx, want.Kind, q); err != nil {
			return err
		}
	}
	return nil
}

// blockedBy decides for a contender that would be the last of q. A writer that
// blocks a reader may have been downgraded, which only its data tells.
func (z Znode) blockedBy(ctx context.Context, kind queue.Kind, q []queue.Node) error {
	s, path := z.Desk, z.Path
	for {
		held, watch := queue.Decide(q, len(q)-1)
		if held {
			return nil
		}
		if kind.Mode != queue.Shared {
			return errs.ErrTaken
		}
		var n driver.Node
		err := s.Repeat(ctx, "list", func(ctx context.Context) (err error) {
			n, err = s.DS.Get(ctx, path+"/"+q[watch[0]].Name)
			return err
		})
		switch d, _ := queue.Decode(n.Data); {
		case errors.Is(err, driver.ErrNoNode):
			q = append(q[:watch[0]], q[watch[0]+1:]...)
		case err != nil:
			return s.cfg.explainList(err, path)
		case queue.Effective(q[watch[0]].Kind, d).Mode != queue.Shared:
			return errs.ErrTaken
		default:
			q[watch[0]].Kind.Mode = queue.Shared
		}
	}
}
