package zklock

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// LockInfo is a name that is in use, with its queue.
type LockInfo struct {
	Name       string      // the lock's name
	Path       string      // the path of the lock's znode
	Contenders []Contender // the holders and the waiters, in the order of the queue
}

// Locks returns the names that are in use below the client's root and start with prefix, in
// byte order, with their queues. prefix is one of the name and not of the path; "" matches
// all names. Each name's queue is as of a moment during the iteration, and as
// [Client.Contenders] returns it. Names without contenders are left out.
//
// An error with a Name concerns that name only, such as a missing right: keep ranging. An error
// without a Name ends the sequence. If the root does not exist, the sequence is empty.
//
// Locks lists the root, or with a dialect whose names are paths each znode below it, and
// each name's queue, and reads each contender's node; at most 16 requests are under way at a
// time. It reads a few names ahead of the loop and keeps no queue that the loop has passed.
// Its requests have ended when the loop has ended. Each loop over the sequence starts again.
func (c *Client) Locks(ctx context.Context, prefix string) iter.Seq2[LockInfo, error] {
	return func(yield func(LockInfo, error) bool) {
		if c == nil || c.pool == nil {
			yield(LockInfo{}, &Error{Op: "locks", Err: errNoClient})
			return
		}
		ctx, cancel := c.bound(ctx)
		defer cancel()
		// The server of the session that reads all names has all that was committed when the session
		// was first used here: another session's server might lag behind what was read before.
		var synced atomic.Pointer[place.Desk]
		operate := func(ctx context.Context, read func(*place.Desk) error) error {
			return onDesk(ctx, c, c.cfg.Place.Root, func(d *place.Desk) error {
				if d != synced.Load() {
					if err := (place.Znode{Desk: d, Path: c.cfg.Place.Root}).Sync(ctx); err != nil {
						return err
					}
					synced.Store(d)
				}
				return read(d)
			})
		}
		walk := place.Walk{Prefix: prefix, Operate: operate}
		err := walk.Run(ctx, c.places, func(name, path string, q place.Roster, err error) bool {
			if err != nil {
				return yield(LockInfo{Name: name, Path: path}, &Error{Op: "locks", Name: queue.Truncate(name, queue.MaxName), Err: err})
			}
			return yield(LockInfo{Name: name, Path: path, Contenders: rank(q)}, nil)
		})
		if err != nil {
			yield(LockInfo{}, &Error{Op: "locks", Err: errs.WhyEnded(ctx, err)})
		}
	}
}
