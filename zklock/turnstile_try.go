package zklock

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

// metLocked reports whether the leader has met another contender, and still has its place. cut: its
// session has no connection now.
func (t *turnstile) metLocked() (met, cut bool) {
	if t.leader == nil || !t.leader.met || t.leader.desk.IsOver() {
		return false, false
	}
	return true, !t.leader.desk.CutSince().IsZero()
}

// screenLocked decides about a try that is not served at once. It returns ErrTaken if the try would
// have to wait for another contender. apart: it asks with a separate place. Otherwise it queues.
func (t *turnstile) screenLocked(r *request) (apart bool, err error) {
	if t.leader == nil && t.holds == 0 && t.queue.Len() == 0 {
		return false, nil
	}
	if r.Mode.Joins() && t.queue.Len() == 0 && t.sharedLocked() && (t.leader == nil || t.leader.r.Mode.Joins()) {
		return true, nil // only readers are ahead
	}
	writer := false
	for at := t.queue.Front(); at != nil && r.Mode.Joins() && !writer; at = at.Next() {
		writer = at.Value.(*ticket).keepsReadersOut()
	}
	if !t.refusesLocked(r, writer) {
		return false, nil
	}
	if met, cut := t.metLocked(); met && cut && t.holds == 0 {
		return true, nil
	}
	position, ahead := t.aheadLocked()
	r.sees(position+1, &ahead)
	return false, errs.ErrTaken
}

// keepsReadersOut reports whether readers that queue behind a ticket wait for it.
func (tk *ticket) keepsReadersOut() bool { return !tk.r.Try && !tk.r.Mode.Joins() }

// refusesLocked reports whether a try would have to wait for another contender. It would not behind
// a leader that is still asking. writer: a writer waits ahead of it in the queue.
func (t *turnstile) refusesLocked(r *request, writer bool) bool {
	if met, _ := t.metLocked(); met || t.holds == 0 {
		return met
	}
	return !r.Mode.Joins() || !t.sharedLocked() || writer || t.leader != nil && !t.leader.r.Mode.Joins()
}

// refuseTriesLocked sends the tries away that would have to wait for another contender. It is called
// after each change that may show one.
func (t *turnstile) refuseTriesLocked() {
	if t.tries == 0 {
		return
	}
	_, ahead := t.aheadLocked()
	position, writer := 1, false // of what aheadLocked describes
	for at := t.queue.Front(); at != nil; {
		tk, next := at.Value.(*ticket), at.Next()
		if writer = writer || tk.keepsReadersOut(); tk.r.Try && t.refusesLocked(tk.r, writer) {
			tk.r.sees(position, &ahead)
			t.unqueueLocked(tk)
			tk.refused = true
			tk.answer(nil, nil)
		} else {
			position++
		}
		at = next
	}
}

// leaderAsks is called when the leader begins to ask on another session: what it has met before may
// have gone.
func (t *turnstile) leaderAsks(d *place.Desk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leader.desk, t.leader.met = d, false
}

// awaitTry is await for a try. The try waits for the answers that the goroutines ahead of it get, and
// for a session, but for no longer than if it asked for itself.
func (t *turnstile) awaitTry(ctx context.Context, tk *ticket) error {
	r := tk.r
	r.NoSessionSince = tk.since
	patient, cancel := t.patientFor(ctx, r)
	defer cancel()
	select {
	case <-tk.answered:
	case <-patient.Done():
		select {
		case <-tk.answered:
		default:
			err := t.waitEnded(patient, tk)
			t.leave(tk)
			return r.outage(ctx, err)
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
func (t *turnstile) waitEnded(ctx context.Context, tk *ticket) error {
	t.mu.Lock()
	held, met := t.holds > 0 || t.grants != nil, t.leader != nil && t.leader.met
	var desk *place.Desk
	if t.leader != nil {
		desk = t.leader.desk
	}
	t.mu.Unlock()
	if desk != nil && desk.IsOver() { // asked once: mu does not keep a session from ending
		desk = nil
	}
	if held || met && desk != nil && !desk.Silent() {
		return errs.WaitEnded(ctx, errs.ErrNotAcquired)
	}
	if desk == nil {
		s, err := t.turnstiles.pool.Session(ctx, t.path)
		if err != nil {
			return err // as the leader would get it, with the reason
		}
		desk = s.Desk
	}
	if cut := desk.CutSince(); !cut.IsZero() {
		return withoutConnection(errs.WaitEnded(ctx, errs.ErrUnavailable), cut)
	}
	err := desk.WaitEnded(ctx, lease.Now().Add(-time.Since(tk.since)))
	if errors.Is(err, errs.ErrUnanswered) {
		return errs.WaitEnded(ctx, errs.ErrNotAcquired) // as in take
	}
	return err
}
