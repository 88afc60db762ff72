package place

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// repair does what a create without success needs: it finds out whether it was applied, and prepares the next try.
func (c *creation) repair(ctx context.Context, w *session.Write, pause time.Duration) (applied bool, _ error) {
	err, lost := w.Err, errors.Is(w.Err, driver.ErrConnLoss)
	if !c.by.Stays() {
		if !lost {
			c.open = nil
		}
		return false, errs.ErrTaken // end looks for the nodes if they may exist
	}
	if lost {
		c.doubt = err
		c.lost++
		more, stop := c.patience(ctx)
		defer stop()
		return c.lookFor(more)
	}
	c.open = nil // nothing was created
	switch {
	case session.Transient(err):
		if !session.Sleep(ctx, c.desk.cfg.Jitter(pause), c.desk.Session.Context().Done()) {
			return false, c.desk.Session.WaitEnded(ctx, c.began)
		}
		return false, nil
	case c.desk.Session.Ended(err):
		return false, errs.ErrSessionOver
	case c.setRefused(w):
		return false, nil // the next try creates without the set, and the queue is listed instead of counted
	case isRefused(w):
		more, stop := c.patience(ctx) // TestBurstOfSeparateWaitersOutlastsConnectTimeout
		defer stop()
		return false, c.desk.adoptRefused(more, w, c.parents)
	case errors.Is(err, driver.ErrNoNode):
		return false, err // replaceOrCreate deals with it
	}
	return false, c.desk.cfg.explain(err, c.claim.Wants[0].Path)
}

// lookFor finds out whether a try with an unknown outcome was applied. If it was not, the next try
// finds all znodes made: see the invariants of fresh names.
func (c *creation) lookFor(ctx context.Context) (applied bool, err error) {
	c.p.doubtful = true
	c.desk.doubt(c.p.dirs(), false) // recover lists now
	if applied, err = c.p.recover(ctx); err != nil {
		return false, c.because(err)
	}
	if applied {
		return true, nil
	}
	c.open = nil
	return false, c.desk.makeAll(ctx, c.parents)
}

// ensure is Znode.ensure. It may wait for the requests of others: see patience.
func (c *creation) ensure(ctx context.Context, z Znode) (parent, error) {
	ctx, stop := c.patience(ctx)
	defer stop()
	return z.ensure(ctx, c.replaces != nil)
}

// maxLost is how many creates of one caller may be lost with their connections before no more time is given to it.
const maxLost = 10

// patience derives the context of requests that are not creates, before the place has nodes. They may wait for those of others,
// as the creates do: after a cut, hundreds have to look for their nodes at once. So they go on while the session
// answers, but for a try, which has its own limit, and a caller whose creates stay unanswered.
func (c *creation) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.claim.Try || c.lost > maxLost || errors.Is(c.doubt, context.DeadlineExceeded) {
		return ctx, func() {}
	}
	until, _ := ctx.Deadline()
	return c.desk.Session.Patient(c.caller, c.began, until)
}
