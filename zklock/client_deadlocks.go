package zklock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
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
	ctx, cancel := c.bound(ctx)
	defer cancel()
	patient, stop := c.pool.Patient(ctx, time.Now())
	s, err := c.pool.Session(patient, c.cfg.Root, 0)
	stop()
	if err != nil {
		return nil, err
	}
	circles, err := c.deadlocks.Circles(ctx, s)
	if err != nil {
		return nil, errs.WhyEnded(ctx, err)
	}
	for _, circle := range circles {
		found = append(found, newDeadlockError(circle))
	}
	return found, nil
}
