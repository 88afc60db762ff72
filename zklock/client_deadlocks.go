package zklock

import (
	"context"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// Deadlocks returns the deadlocks below the client's root that exist at a moment of the call, for an
// operator: each as the error that ends one of its waits. It knows the waits that have lasted for
// deadlock_timeout, and whose contexts carry locks or that want several names with [All]. A deadlock exists
// for a moment only, unless a client cannot look for it.
//
// It lists the register of these waits, and reads of it only what is in a circle. It needs the right READ
// there. connect_timeout bounds the wait for a session, and ctx bounds the whole call.
func (c *Client) Deadlocks(ctx context.Context) (found []*DeadlockError, err error) {
	defer annotate(&err, "deadlocks", "")
	if c == nil || c.pool == nil {
		return nil, errNoClient
	}
	err = c.lookAtWaits(ctx, func(ctx context.Context, s *place.WatchedDesk) error {
		circles, err := c.deadlocks.Circles(ctx, s)
		for _, circle := range circles {
			found = append(found, newDeadlockError(circle))
		}
		return err
	})
	return found, err
}

// NestedWait says that a request which has a lock waits for another one.
type NestedWait struct {
	Held    string // the name of the lock that it has, or that is one of an [All] that it waits for
	Zxid    int64  // of the [Contender] by which it has that
	Waiting string // the name of the lock that it waits for
}

// NestedWaits returns the registered waits between some names, which [Client.Locks] has returned, in the order
// of their registrations. Each leads from the holder of a name to what that holder waits for, and so in the end to
// a process that waits for nothing. A wait is registered as for [Client.Deadlocks]. Requests that wait behind
// another one of their process are among them, and no queue shows these. It needs the right READ on the register,
// which it lists once.
func (c *Client) NestedWaits(ctx context.Context, locks []LockInfo) (found []NestedWait, err error) {
	defer annotate(&err, "nested waits", "")
	if c == nil || c.pool == nil {
		return nil, errNoClient
	}
	paths := make([]string, len(locks))
	for i, l := range locks {
		paths[i] = l.Path
	}
	err = c.lookAtWaits(ctx, func(ctx context.Context, s *place.WatchedDesk) error {
		edges, err := c.deadlocks.Edges(ctx, s, paths)
		for _, e := range edges {
			to := locks[e.Waiting]
			// An All stands in the queues of all its names, and waits in one of them.
			if e.Held != e.Waiting && slices.ContainsFunc(to.Contenders, func(o Contender) bool { return o.Held && o.Zxid < e.Before }) {
				found = append(found, NestedWait{Held: locks[e.Held].Name, Zxid: e.Zxid, Waiting: to.Name})
			}
		}
		return err
	})
	return found, err
}

// lookAtWaits calls look with a session that can read the register of waits.
func (c *Client) lookAtWaits(ctx context.Context, look func(context.Context, *place.WatchedDesk) error) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	patient, stop := c.pool.Patient(ctx, time.Now())
	s, err := c.pool.Session(patient, c.cfg.Place.Root, 0)
	stop()
	if err != nil {
		return err
	}
	if err := look(ctx, s); err != nil {
		return errs.WhyEnded(ctx, err)
	}
	return nil
}
