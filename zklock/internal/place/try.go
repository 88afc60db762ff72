package place

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// A try is an attempt that fails instead of waiting for another contender. It asks before it enters the
// queue: see blocked. After that it may find that another contender was faster: see refuse. It waits
// only for answers, and for places that their clients may keep and then give up for it.

// recallWait returns how long a try waits for a place that another client may keep: for ten
// times as long as the newest write took, which is mostly the try's own create. A recall takes
// about three times that. The rest is for a client that is further away, or has other writes
// under way. If that client uses the place, the try waits in vain, for two seconds at most.
func recallWait(desk *Desk) time.Duration {
	return min(max(10*desk.Session.Latency(), 200*time.Millisecond), 2*time.Second)
}

// bound derives the context of a try that has a place in the queue. It bounds the wait for a place
// to be recalled or, without one, for answers of the ensemble.
func (a *Attempt) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.recalls {
		return context.WithTimeoutCause(ctx, recallWait(a.desk()), errs.ErrTaken)
	}
	return a.desk().Session.PatientTry(ctx, a.since)
}

// errCutOff is the error of a try whose session had no connection when recallWait was over.
var errCutOff = errs.Case(errs.ErrUnavailable, "the connection was lost while a try waited for the place of another client")

// refuse returns the error of a try whose node is at index self of q, if it would have to wait: another
// contender was faster, or a holder's client takes its time to give a place up. Else it returns q
// as far as the try needs it, which is its own node: a writer ahead may have become a reader.
func (a *Attempt) refuse(ctx context.Context, c *ownNode, q []queue.Node, self int) (own []queue.Node, at int, err error) {
	own = q[self : self+1]
	position, ahead, err := Znode{a.desk(), c.dir}.blockedBy(ctx, c.kind, q, self)
	if position > 0 {
		a.By.Waits(a.place, c.dir, position, ahead)
		err = errs.ErrTaken
	}
	return own, 0, err
}

// blocked returns the error of a try that would have to wait for a contender in a
// queue; nil if it would not. It writes nothing. The nodes of a place that its own would replace do not
// count. blocked sets recalls if the only nodes ahead may be kept ones, which their clients give up
// when another contender arrives.
//
// blocked waits for releases of this client that are not confirmed, because their callers do not
// wait for that. If this client has released the name on another session, this one's server may
// still show the node, so a Sync comes first.
func (a *Attempt) blocked(ctx context.Context) error {
	desk, r := a.desk(), a.Claim
	for _, want := range r.Wants {
		z := Znode{desk, want.Path}
		for _, gone := range desk.parents.left(want.Path) {
			if err := desk.Session.Await(ctx, gone); err != nil {
				return err
			}
		}
		if id := desk.parents.get(want.Path).releasedOn; id != 0 && id != desk.Session.ID() {
			if err := z.Sync(ctx); err != nil && !errors.Is(err, driver.ErrNoNode) {
				return err
			}
		}
		q, err := z.list(ctx)
		if errors.Is(err, driver.ErrNoNode) {
			continue
		}
		if err != nil {
			return desk.cfg.explainList(err, want.Path)
		}
		// As for Acquire: a node whose sequence number is at the end of the range is
		// ordered behind every new contender.
		q = slices.DeleteFunc(q, func(c queue.Node) bool { return c.Seq >= queue.MaxSequence || a.place.has(c.Name) }) // TestTryIsNotRefusedForThePlaceItReplaces
		q = append(q, queue.Node{Kind: want.Kind})
		if err := queue.Conflict(q, len(q)-1); err != nil {
			return err
		}
		position, ahead, err := z.blockedBy(ctx, want.Kind, q, len(q)-1)
		switch {
		case err != nil:
			return err
		case position == 1 && ahead.MayBeKept():
			a.recalls = true
		case position > 0:
			a.By.Waits(nil, want.Path, position, ahead)
			return errs.ErrTaken
		}
	}
	return nil
}

// blockedBy returns how many contenders are ahead of the one at index self of q, and the one that it would
// wait for; 0 if it would not wait. A writer that blocks a reader may have been downgraded to a
// reader: only the data of its node says so, which blockedBy reads.
func (z Znode) blockedBy(ctx context.Context, kind queue.Kind, q []queue.Node, self int) (position int, ahead Entry, err error) {
	for {
		held, wait := queue.Decide(q, self, 1)
		if held {
			return 0, Entry{}, nil
		}
		nearest := &q[wait.On[0]]
		if mode := nearest.Kind.Mode; !mode.Lowers() || kind.Mode.Excludes(mode.Lowered()) {
			return queue.Position(q, self), Entry{Node: *nearest}, nil
		}
		n, err := z.Desk.Session.Read(ctx, "list", z.Path+"/"+nearest.Name)
		switch d, _ := queue.Decode(n.Data); {
		case errors.Is(err, driver.ErrNoNode):
			q = append(q[:wait.On[0]], q[wait.On[0]+1:]...)
			self--
		case err != nil:
			return 0, Entry{}, z.Desk.cfg.explainList(err, z.Path)
		case kind.Mode.Excludes(queue.Effective(nearest.Kind, d).Mode):
			return self, entryOf(*nearest, n, false), nil
		default:
			nearest.Kind.Mode = nearest.Kind.Mode.Lowered()
		}
	}
}
