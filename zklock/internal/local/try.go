package local

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// A try behind a goroutine of its own client that is still asking the ensemble does not know yet
// whether the lock is taken. That goroutine may be granted the lock, may meet another contender, or may
// find no session. So the try queues, and has one of four ends, the first of these:
//
//   - It is refused, with ErrNotAcquired: a hold is in its way, or the leader has met a contender.
//   - It becomes the leader, since the one ahead has left without either. It asks for itself then.
//   - It joins readers.
//   - Its own time for a session and an answer is over: ErrUnavailable. See session.Pool.PatientTry.
//
// A leader whose session has no connection does not know whether the contender that it has met is
// still there. A try that comes then asks for itself, with a separate place.

// screenLocked decides about a try that is not served at once. It returns ErrTaken if the try would
// have to wait for another contender. apart: it asks with a separate place. Otherwise it queues.
func (q *Queue) screenLocked(r *Request) (apart bool, err error) {
	if q.leader == nil && q.holds == 0 && q.waiters.Len() == 0 {
		return false, nil
	}
	if r.Mode.Joins() && q.waiters.Len() == 0 && q.sharedLocked() && (q.leader == nil || q.leader.r.Mode.Joins()) {
		return true, nil // only readers are ahead
	}
	writer := false
	for at := q.waiters.Front(); at != nil && r.Mode.Joins() && !writer; at = at.Next() {
		writer = at.Value.(*ticket).keepsReadersOut()
	}
	if !q.refusesLocked(r, writer) {
		return false, nil
	}
	if met, cut := q.metLocked(); met && cut && q.holds == 0 {
		return true, nil
	}
	ahead := q.aheadLocked()
	ahead.Position++
	r.Caller.Sees(ahead)
	return false, errs.ErrTaken
}

// leaderAsks is called when the leader begins to ask on another session: what it has met before may
// have gone.
func (q *Queue) leaderAsks(d *place.Desk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leader.desk, q.leader.met = d, false
}

// awaitTry is await for a try. The try waits for the answers that the goroutines ahead of it get, and
// for a session, but for no longer than if it asked for itself.
func (q *Queue) awaitTry(ctx context.Context, tk *ticket) error {
	r := tk.r
	r.NoSessionSince = tk.since
	patient, cancel := q.patientFor(ctx, r)
	defer cancel()
	select {
	case <-tk.answered:
	case <-patient.Done():
		select {
		case <-tk.answered:
		default:
			err := q.waitEnded(patient, tk)
			q.leave(tk)
			return q.outage(ctx, r, err)
		}
	}
	if tk.refused {
		return errs.ErrTaken
	}
	return nil
}

// waitEnded returns the error of a wait in the queue that ctx has ended. The wait was for another
// contender if there is a hold, or if the leader has met one. Otherwise it was for what the leader
// waits for: an answer or, without a session that works, a session.
func (q *Queue) waitEnded(ctx context.Context, tk *ticket) error {
	q.mu.Lock()
	held, met := q.holds > 0 || q.grants != nil, q.leader != nil && q.leader.met
	var desk *place.Desk
	if q.leader != nil {
		desk = q.leader.desk
	}
	q.mu.Unlock()
	if desk != nil && desk.Session.IsOver() { // asked once: mu does not keep a session from ending
		desk = nil
	}
	if held || met && desk != nil && !desk.Session.Silent() {
		return errs.WaitEnded(ctx, errs.ErrNotAcquired)
	}
	if desk == nil {
		s, err := q.queues.pool.Session(ctx, q.path, 0)
		if err != nil {
			return err // as the leader would get it, with the reason
		}
		desk = s.Desk
	}
	if cut := desk.Session.CutSince(); !cut.IsZero() {
		return withoutConnection(errs.WaitEnded(ctx, errs.ErrUnavailable), cut)
	}
	err := desk.Session.WaitEnded(ctx, lease.Now().Add(-time.Since(tk.since)))
	if errors.Is(err, errs.ErrUnanswered) {
		return errs.WaitEnded(ctx, errs.ErrNotAcquired) // as in take
	}
	return err
}
