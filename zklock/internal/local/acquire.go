package local

import (
	"context"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Acquire waits until a request has a hold. Its handle is the last that the Caller has made. The
// request is between Enter and Leave.
func (q *Queue) Acquire(r *Request) (err error) {
	for {
		if q.handsOver(r) {
			r.apart, r.Keep = false, q.queues.cfg.Keep > 0 && r.Mode.Keeps()
			err = q.acquire(r)
		} else {
			err = q.acquireAlone(r)
		}
		switch {
		case err != nil:
			return err
		case r.Caller.Handle().Held():
			return q.comesLate(r)
		case q.queues.contextOf(r).Err() != nil:
			return errs.WaitEnded(q.queues.contextOf(r), errs.ErrNotAcquired)
		}
		// The hold was lost between its grant and here: queue again at the end.
		q.waitAgain(r)
	}
}

// comesLate returns the error of a request whose caller is not there any more when it gets its lock, which is given back:
// the answer that it waited for was faster than the end of its context, and its goroutine slower. On a machine that is
// very busy a context ends late, too: its goroutine has to run first. So a request that had to wait, or to ask the
// ensemble, looks at the clock. Its WithWait does not count: that bounds the wait alone.
//
// Nothing else lets an acquisition outlive its context. Each wait of its goroutine ends with the context, but for these: a
// caller that leaves while it is granted a place waits for the end of that, which takes no request (Queue.leave, gate.leave,
// Queue.enter); hooks, also the Handover hook of the one before it; and the wait of a registered circle, which takes ten
// milliseconds to be withdrawn (deadlock.Detector.End).
func (q *Queue) comesLate(r *Request) error {
	deadline, bounded := r.Ctx.Deadline()
	var err error
	switch ended := r.Ctx.Err(); {
	case ended != nil:
		err = errs.WaitEnded(r.Ctx, errs.ErrNotAcquired)
	case r.ctx == nil || !bounded || !time.Now().After(deadline):
		return nil
	default:
		err = fmt.Errorf("%w: %w", errs.ErrNotAcquired, context.DeadlineExceeded)
	}
	r.got.Drop(r.Caller.Handle())
	r.got = nil
	switch {
	case r.Try:
	case r.apart:
		q.queues.gate.gaveUp(r, r.Origin.Since)
	default:
		q.mu.Lock()
		q.patience.leftLocked(r, r.Origin.Since, deadline)
		q.mu.Unlock()
	}
	session.Sleep(r.Ctx, time.Second, nil) // it ends soon, and the caller finds its error set then, as with any other wait
	return err
}

// handsOver reports whether the place of a request takes part in hand-over.
func (q *Queue) handsOver(r *Request) bool {
	cfg := q.queues.cfg
	return len(r.Wants) == 1 && r.Mode.HandsOver() && !r.Alone && cfg.HandoverLimit > 0 && cfg.HandoverTime > 0
}

// acquire acquires a hold that takes part in hand-over.
func (q *Queue) acquire(r *Request) error {
	granted, from, tk, err := q.enter(r, r.latest())
	switch {
	case from != nil:
		r.Caller.HandedOver(from.trace) // which changes only after the release of this hold
		return nil
	case granted || err != nil:
		return err
	case tk == nil:
		return q.acquireAlone(r)
	}
	switch err := q.await(tk); {
	case err != nil:
		return err
	case tk.granted:
		return nil
	}
	// If the last leader had no usable session, the goroutines behind it had none either, so
	// connect_timeout does not begin again for them.
	if since := q.noSessionSince; since.After(tk.since) {
		r.NoSessionSince = since
	} else if !since.IsZero() {
		r.NoSessionSince = tk.since
	}
	var left *place.Place
	defer func() { q.led(r.got, left) }() // also if a hook panics
	since := q.patience.now()
	left, err = q.take(r, tk.start)
	switch {
	case err == nil:
		q.hasLed(r, since)
	case q.queues.contextOf(r).Err() != nil && !r.Try:
		q.gaveUp(tk)
	}
	q.noSessionSince = r.NoSessionSince
	return err
}

// acquireAlone acquires a hold with a separate place, which is not handed over.
func (q *Queue) acquireAlone(r *Request) error {
	r.apart, r.Keep = true, false
	q.queues.makeWay(r, 1)
	defer q.queues.makeWay(r, -1)
	if q.queues.gate.applies(r) {
		return q.queues.gate.acquire(q, r)
	}
	since := time.Now()
	left, err := q.take(r, nil)
	if r.Candidacy && !r.Try && err != nil && q.queues.contextOf(r).Err() != nil {
		q.queues.gate.gaveUp(r, since)
	}
	if left != nil {
		left.Remove()
	}
	return err
}

// enter puts a request into the queue, or serves it at once. It returns one of three: that the request
// was granted a hold, with the kept place that it got, if it did; the ticket of a request in the
// queue; or nothing, if the request should take a separate place, because it is a try, and only readers
// are ahead of it, or a leader that has lost its connection. latest is when the request's wait ends at the latest, if
// it fails rather than wait in vain.
func (q *Queue) enter(r *Request, latest time.Time) (granted bool, from *keptPlace, tk *ticket, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.grants != nil {
		q.granted.Wait()
	}
	if h := q.current; h != nil && h.finished.Load() {
		q.endLocked(h) // Vacate does the same, perhaps later: r would meet a lost hold only; TestLostHoldCountsUntilItsHandlesHaveEnded
	}
	if q.waiters.Len() == 0 {
		if q.shareLocked(r) {
			return true, nil, nil, nil
		}
	}
	if s := q.kept; q.keeps() {
		if granted, tk := q.takeUpLocked(r); !granted {
			return false, nil, tk, nil
		}
		return true, s, nil, nil
	}
	if r.Try {
		if apart, err := q.screenLocked(r); apart || err != nil {
			return false, nil, nil, err
		}
	}
	if err := q.patience.busyLocked(latest, q.writers); err != nil { // readers that wait share a turn
		return false, nil, nil, err
	}
	tk = newTicket(r)
	tk.leaderWaits, tk.patience = q.leaderWaitsLocked(r), &q.patience
	tk.at = q.waiters.PushBack(tk)
	q.countLocked(tk, 1)
	if q.agent != nil {
		session.Poke(q.agent.comes)
	}
	q.serveLocked(nil)
	return false, nil, tk, nil
}

// await waits for a ticket's answer. If the request's context ends first, it takes the ticket out of
// the queue.
func (q *Queue) await(tk *ticket) error {
	select {
	case <-tk.answered:
		if tk.refused {
			return errs.ErrTaken
		}
		return nil
	default:
	}
	ctx := q.queues.contextOf(tk.r)
	if tk.r.Try {
		return q.awaitTry(ctx, tk)
	}
	deadline, _ := tk.r.Ctx.Deadline() // without a mutex: it is the caller's
	for leaderWaits := tk.leaderWaits; ; leaderWaits = nil {
		q.mu.Lock()
		tk.deadline = deadline
		ahead := q.aheadLocked()
		q.mu.Unlock()
		if leaderWaits == nil {
			leavesIfPanics(func() { tk.r.meets(ahead) }, func() { q.leave(tk) })
		}
		select {
		case <-tk.answered:
			return nil
		case <-leaderWaits:
		case <-ctx.Done():
			err := q.waitEnded(ctx, tk)
			q.seesAgent(tk)
			q.leave(tk)
			return err
		}
	}
}

// seesAgent notes for the error of a wait what the place waits for that an agent has. The queue's goroutine
// has seen only the leader before it.
func (q *Queue) seesAgent(tk *ticket) {
	q.mu.Lock()
	led, ahead := q.agent != nil, q.aheadLocked()
	q.mu.Unlock()
	if led && !ahead.Local {
		tk.r.Caller.Sees(ahead)
	}
}

// leaderWaitsLocked decides whether a reader that enters the queue already waits for other
// contenders. It does not if the leader is a reader that is asking the ensemble for a place, and
// all tickets between the two are readers' too: they will join the leader's hold. In this case
// leaderWaitsLocked returns a channel, which is closed if the leader has to wait for other
// contenders; then the readers behind it wait too. Otherwise it returns nil.
func (q *Queue) leaderWaitsLocked(r *Request) <-chan struct{} {
	if r.Try || !r.Mode.Joins() || q.leader == nil || !q.leader.r.Mode.Joins() || q.leader.waits || !q.sharedLocked() {
		return nil
	}
	last := q.waiters.Back()
	for last != nil && last.Value.(*ticket).r.Try {
		last = last.Prev() // it does not wait: if there is anything to wait for, it leaves
	}
	if last != nil && (q.leaderWaits == nil || last.Value.(*ticket).leaderWaits != q.leaderWaits) {
		return nil
	}
	if q.leaderWaits == nil {
		q.leaderWaits = make(chan struct{})
	}
	return q.leaderWaits
}

// leaderMeets is called when the leader has found another contender in ZooKeeper's queue. The tries
// behind the leader fail, without a request of their own. If the leader waits for that contender,
// because it is not a try itself, leaderMeets notifies the readers that ask together with the leader:
// see leaderWaitsLocked. at is where it waits.
func (q *Queue) leaderMeets(waits bool, at waitingPlace) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaderMeetsLocked(waits, at)
}

func (q *Queue) leaderMeetsLocked(waits bool, at waitingPlace) {
	q.leader.met = true
	q.lead = at
	q.refuseTriesLocked()
	if q.leader.waits = waits; waits && q.leaderWaits != nil {
		close(q.leaderWaits)
		q.leaderWaits = nil
	}
}

// leave takes a ticket out of the queue. If the ticket was already sent its answer, leave
// passes on what it got.
func (q *Queue) leave(tk *ticket) {
	q.mu.Lock()
	if !tk.r.Try {
		q.patience.leftLocked(tk.r, tk.since, tk.deadline)
	}
	if tk.at != nil {
		q.unqueueLocked(tk)
		q.serveLocked(nil) // it may have been the only writer, which kept readers from joining; TestWritersNodeGoesToReadersAndBack
		if q.agent != nil {
			q.agent.reviewLocked()
		}
		q.mu.Unlock()
		return
	}
	q.mu.Unlock()
	<-tk.answered // at was cleared, so the answer was sent or is about to be
	switch {
	case tk.refused:
	case tk.granted:
		tk.r.got.Drop(tk.r.Caller.Handle()) // TestWaiterThatLeavesPassesOnWhatItGot
	default:
		q.led(nil, tk.start) // TestWaiterThatLeavesPassesOnWhatItGot
	}
}
