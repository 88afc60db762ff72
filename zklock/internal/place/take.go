package place

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Take makes the attempt, and returns when a place is granted or the attempt has failed. given, if
// not nil, is a place to start with: one that already waits in the queue, or one that a new place
// has to replace. Only a working session can give a place in the queue, so patient bounds Take until
// it has one; from then on ctx does. Take calls cancel for patient before it waits, since there may
// be thousands of waiters.
//
// If Take succeeds, the requester has begun a hold. If ctx ends while a place waits in the queue, or while
// its nodes are being created, Take returns that place with the error, so that another goroutine can go on with it. So it does
// with the given place, if a try would have to wait in it, or behind it. On any other error nothing
// stays queued.
func (a Attempt) Take(ctx, patient context.Context, cancel context.CancelFunc, given *Place) (waiting *Place, err error) {
	a.place, a.given, a.patient, a.cancel = given, given, patient, cancel
	returns := false
	defer func() {
		if !returns && a.place != nil { // a hook has panicked: see Attempt
			a.place.Remove()
		}
	}()
	waiting, err = a.take(ctx)
	returns = true
	return waiting, err
}

func (a *Attempt) take(ctx context.Context) (waiting *Place, err error) {
	if err = a.acquire(ctx); err == nil {
		a.lookAfter()
		return nil, nil
	}
	if a.recalls && a.wait.ended == errs.ErrTaken {
		if state, _ := a.desk().Session.State(); state != driver.Connected {
			err = errCutOff // the place ahead may have been recalled: the lock is not known to be taken
		}
	}
	if r := a.Claim; errors.Is(err, errs.ErrUnavailable) && a.wait.ended == nil && r.NoSessionSince.IsZero() {
		r.NoSessionSince = time.Now().Add(-a.desk().cfg.ConnectTimeout) // it had a place, and no answer for so long since
	}
	return a.settle(err), err
}

// settle decides what becomes of the place of an attempt that has failed. It returns a place that is
// of use to another goroutine of this process, for the caller, and removes any other one.
func (a *Attempt) settle(err error) (waiting *Place) {
	p := a.place
	switch {
	case p == nil:
		return nil
	case errors.Is(err, errs.ErrNodeGone), errors.Is(err, errs.ErrSessionOver): // of no use; the request goes on with another place
	case a.wait.ended != nil, p.opening != nil:
		return p // it waits in the queue, or is being created, and its goroutine gives up
	case p == a.given && errors.Is(err, errs.ErrTaken):
		return p // a try would have to wait; the goroutine behind it may be no try
	}
	p.Remove()
	return nil
}

// lookAfter does what a place needs that was granted after a wait: if its nodes are watched already,
// guards get them at once. A permit's node is marked.
func (a *Attempt) lookAfter() {
	p := a.place
	if p.nodeWatches != nil {
		p.guardNodes()
	}
	if p.marks {
		permits := p.nodes[0].kind.Permits
		p.markGranted(a.window(permits) > permits)
	}
	p.unmarked = nil
}

// markGranted writes into the node of a permit's place that the place was granted. The contender that watches it for that, if
// there is one, is one of the first in line now, and learns of it by that change. A place needs no mark if there were
// no more contenders than permits when it was created, and none ahead that asks for fewer: it was never behind another that waits. The
// write is repeated until it is done or the node is gone, which wakes the contender, too. Where the servers are further away than work
// takes, it is late by the time of a write: a permit that is back by then needs no mark, and all that watch its node read it again after one.
func (p *Place) markGranted(far bool) {
	desk, path := p.Desk, p.nodes[0].path
	d, _ := queue.Decode(p.unmarked)
	d.Granted = true
	desk.Session.Spawn(func() {
		if far { // TestPermitsFarAwayAreGrantedSideBySide
			late := time.NewTimer(desk.Session.Latency())
			defer late.Stop()
			select {
			case <-late.C:
			case <-desk.Session.Context().Done():
			}
			if p.progress.ending() {
				return
			}
		}
		err := desk.Session.Repeat(desk.Session.Context(), "mark", func(ctx context.Context, ds driver.Session) error {
			_, err := ds.Set(ctx, path, d.Encode(), 0)
			return err
		})
		if errors.Is(err, driver.ErrBadVersion) { // another has written since its create, or the reply was lost
			_ = p.Amend(desk.Session.Context(), func(d *queue.Data) { d.Granted = true })
		}
	})
}
