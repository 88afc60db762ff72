package zklock

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// watchPause is the time from one look of a Watch at the queue to the next, at least. It
// bounds what a view of a busy name costs the servers.
const watchPause = 50 * time.Millisecond

// Watch returns the queue of a name as [Client.Contenders] does: at once, and again after
// each change, when a contender arrives, leaves or is granted the lock. Changes that follow
// each other fast, or while the loop is busy, may be reported as one. The last state is
// always reported. A name that is not in use has no contenders; Watch waits until it has
// some. The label of a holder is up to date while it holds the name alone; that of another
// contender is the one that it had when Watch first saw it.
//
// An error that matches [ErrUnavailable] says that the queue is not known at the moment. If
// the loop goes on, Watch keeps trying, and reports the state when the ensemble can be
// reached again, except after driver.ErrTLS and driver.ErrProtocol, which do not pass. Any other
// error ends the sequence: that of the context, which ends it like this, [ErrClosed],
// [ErrInvalidName], [ErrNoAuth], [ErrBadEnsemble].
//
// The first look costs a sync, a list and a read for each contender; later ones cost a list
// and a read for each arrival and each grant, and Watch looks at most 20 times a second. All
// of a client's loops over one name share the watches in ZooKeeper, one on the name and one
// on its holder. These stay in the servers' memory until the name next changes, also after
// the end of the loop. Each loop over the sequence starts again.
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[[]Contender, error] {
	return func(yield func([]Contender, error) bool) {
		if err := operable(c, name); err != nil {
			yield(nil, &Error{Op: "watch", Name: queue.Truncate(name, queue.MaxName), Err: err})
			return
		}
		ctx, cancel := c.bound(ctx)
		defer cancel()
		path := c.path(name)
		var last []Contender // the state that was reported last
		reported := false    // last was reported, and no error since
		// follow reports the queue and its changes on one session. It returns nil if the loop has ended.
		follow := func(d *place.Desk) error {
			for view := (place.View{Znode: place.Znode{Desk: d, Path: path}}); ; {
				looked := time.Now()
				q, err := view.Look(ctx)
				if err != nil {
					return err
				}
				if now := rank(q); !reported || !slices.Equal(now, last) {
					if last, reported = now, true; !yield(slices.Clone(now), nil) {
						return nil
					}
				}
				if err := view.Changed(ctx); err != nil {
					return err
				}
				session.Sleep(ctx, watchPause-time.Since(looked), d.Session.Context().Done())
			}
		}
		for {
			err := onDesk(ctx, c, path, follow)
			if err == nil {
				return // the loop has ended
			}
			passing := ctx.Err() == nil && errors.Is(err, errs.ErrUnavailable) && !session.Permanent(err)
			if !yield(nil, &Error{Op: "watch", Name: queue.Truncate(name, queue.MaxName), Err: errs.WhyEnded(ctx, err)}) || !passing {
				return
			}
			reported = false // after an error the state is reported, even if it has not changed
		}
	}
}
