package place

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Request is an acquisition, as far as its place needs to know it.
type Request struct {
	By     Requester
	Ctx    context.Context // for hooks: what the Acquire hook returned
	Wants  []Want
	Mode   queue.Mode
	Try    bool // it fails instead of waiting for other contenders
	Keep   bool // its place may be kept in the queue after its last use
	Origin Origin

	// Candidacy says that its wait and its hold are meant to be long. Its place is not handed over, so
	// the data of its nodes say so for as long as they exist.
	Candidacy bool

	// NoSessionSince is since when there has been no usable session; zero if there is
	// one. Only the requester's goroutine uses it.
	NoSessionSince time.Time
}

// data returns the data for the queue nodes of a request. They do not describe it if the place may be
// kept: see describe.
func (r *Request) data(cfg *Settings, keep bool) queue.Data {
	d := queue.Data{Host: cfg.Host, PID: cfg.PID, Mode: r.Mode.String(), Keep: keep, Candidacy: r.Candidacy}
	if !keep {
		d.Label, d.Since, d.Trace = r.Origin.Label, r.Origin.Since, r.Origin.Trace
	}
	return d
}

// Attempt is a request's attempt to acquire its names on one session.
type Attempt struct {
	*Session // that the attempt is made on
	Request  *Request

	// recalls is set for a try that finds only places ahead that their clients may keep. It
	// waits for them to be recalled, but no longer than recallWait.
	recalls bool
}

// recallWait returns how long a try waits for a place that another client may keep: for ten
// times as long as the newest write took, which is mostly the try's own create. A recall takes
// about three times that. The rest is for a client that is further away, or has other writes
// under way. If that client uses the place, the try waits in vain, for two seconds at most.
func recallWait(desk *Desk) time.Duration {
	return min(max(10*desk.Latency(), 200*time.Millisecond), 2*time.Second)
}

// bound derives the context of a try that has a place in the queue. It bounds the wait for a place
// to be recalled or, without one, for answers of the ensemble. since is when the try began.
func (a Attempt) bound(ctx context.Context, since time.Time) (context.Context, context.CancelFunc) {
	if a.recalls {
		return context.WithTimeoutCause(ctx, recallWait(a.Desk), errs.ErrTaken)
	}
	return a.Desk.PatientTry(ctx, since)
}

// errCutOff is the error of a try whose session had no connection when recallWait was over.
var errCutOff = errs.Case(errs.ErrUnavailable, "the connection was lost while a try waited for the place of another client")

// Take makes the attempt, and returns when the place is granted or the attempt has
// failed. p, if not nil, is a place to start with: one that already waits in the queue,
// or one that a new place has to replace. Only a working session can give a place in
// the queue, so patient bounds Take until it has one; from then on ctx does. Take
// calls cancel for patient before it waits, since there may be thousands of waiters.
//
// If Take succeeds, the requester has begun a hold. If ctx ends while a place waits in
// the queue, Take returns that place with the error, so that another goroutine can go
// on with it. So it does with a place that p was, if a try would have to wait in it. On any
// other error nothing stays queued.
func (a Attempt) Take(ctx, patient context.Context, cancel context.CancelFunc, p *Place) (waiting *Place, err error) {
	desk, r, left := a.Desk, a.Request, p
	p, alone, err := a.begin(ctx, patient, p)
	if cancel(); err != nil {
		return p, err
	}
	p.move(resumed) // refused if it is not reserved; a reserved place is for this request
	since := r.NoSessionSince
	r.NoSessionSince = time.Time{}
	if r.Mode.Joins() {
		p.BecomeShared(&r.Origin)
	}
	for bounded := !r.Try; ; alone = false {
		if !alone {
			if !bounded {
				ctx, cancel = a.bound(ctx, since)
				defer cancel()
				bounded = true
			}
			if err = a.awaitTurn(ctx, p); err != nil {
				break
			}
		}
		if p.Grant(r.By) {
			if p.nodeWatches != nil { // it has waited
				p.entrust()
				if r.Wants[0].Kind.Permits > 0 {
					p.markGranted()
				}
			}
			return nil, nil
		}
		if p.passedOnRevoked() {
			p.Remove()
			return nil, errs.ErrNodeGone // the request takes another place
		}
		// Grant failed: wait, if only for a longer lease.
	}
	if a.recalls && context.Cause(ctx) == errs.ErrTaken {
		if state, _ := desk.State(); state != driver.Connected {
			err = errCutOff // the place ahead may have been recalled: the lock is not known to be taken
		}
	}
	if errors.Is(err, errs.ErrUnavailable) && ctx.Err() == nil {
		r.NoSessionSince = time.Now().Add(-desk.cfg.ConnectTimeout)
	}
	if ctx.Err() != nil && !errors.Is(err, errs.ErrNodeGone) || p == left && errors.Is(err, errs.ErrTaken) {
		return p, err
	}
	p.Remove()
	return nil, err
}

// begin returns the place to wait in: p, or a new one. For alone see enqueue. On an error it returns p
// if that still waits in the queue, since another contender is in the way of a try.
func (a *Attempt) begin(ctx, patient context.Context, p *Place) (_ *Place, alone bool, err error) {
	desk, r := a.Desk, a.Request
	if p != nil && !p.mustRequeue() && p.Standing().Mode.Covers(r.Mode) {
		desk.mu.Lock()
		p.shown = 0 // its nodes' data describe another request
		desk.mu.Unlock()
		return p, false, nil
	}
	if r.Try {
		a.recalls, err = a.blocked(patient, p)
		if err != nil && p != nil && !errors.Is(err, errs.ErrTaken) {
			p.Remove()
			p = nil
		}
		if err != nil {
			return p, false, err
		}
	}
	return a.enqueue(patient, ctx, p)
}

// markGranted writes into the node of a permit's place, which had to wait, that the place was
// granted. The contender behind it, if there is one, is the first in line now, and learns of it
// by that change. The write is repeated until it is done or the node is gone, which wakes the
// contender, too.
func (p *Place) markGranted() {
	p.Desk.Spawn(func() { _ = p.Amend(p.Desk.Context(), func(d *queue.Data) { d.Granted = true }) })
}

// awaitTurn returns when it is the place's turn and the lease is long enough for a grant.
//
// A grant has three conditions, which are checked in this order:
//
//   - No contender is ahead that the place has to wait for, on any of its names.
//   - The session's lease has the length that a grant needs.
//   - Our own nodes exist and belong to our session. They are read on the connection
//     that showed no contender ahead: an operator may have deleted one since, and
//     two waiters must never both be granted the lock.
//
// The first condition stays true: no contender gets ahead of a node that exists. So a wait
// for the lease does not make the waiter list its queue again, if our nodes are then read on
// the same connection. If the lease got too short during the read, the waiter waits
// for it again, and reads its nodes again. Place.Grant checks the lease a last time.
func (a Attempt) awaitTurn(ctx context.Context, p *Place) error {
	desk := a.Desk
	for {
		gen, err := a.awaitFront(ctx, p)
		if err != nil {
			return err
		}
		for seen := gen; seen == gen && gen != 0; {
			if err := desk.AwaitLease(ctx); err != nil {
				return err
			}
			if _, seen, err = p.watchNodes(ctx, true); err != nil {
				return err
			}
			if seen == gen && desk.Leased() {
				return nil
			}
		}
	}
}
