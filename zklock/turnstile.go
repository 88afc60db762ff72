package zklock

import (
	"container/list"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// turnstile is a client's own queue for one name. The goroutines of the client that want the name
// queue here, in the order of their calls, behind one place in ZooKeeper's queue. The first of
// them, the leader, takes that place; the others wait on a channel. A release passes the place on
// to the next goroutine without a request, as long as that is fair to other processes. After that
// the next goroutine becomes the leader, and takes a new place at the end of ZooKeeper's queue;
// the same request gives up the old place.
//
// Readers share a hold. When it would no longer be fair to join, a reader takes a separate place.
// So there may be several holds at a time, which are then all shared.
//
// Invariants:
//   - There is a leader, or a place is being passed on, or a hold excludes the first in the queue,
//     or the queue is empty. serveLocked makes it so after each change.
//   - While a place is passed on to the request grants, there is no leader and no hold, nothing else
//     is served, and a goroutine that comes waits before it looks at the rest: so it finds the hold.
//     The grant itself runs without mu, and makes no request: see grantLocked.
//   - A writer behind readers becomes the leader if they do not have a node that it may get. So it
//     takes its place in ZooKeeper's queue at once, and readers of other processes do not pass it.
//   - If there are several holds, all are shared and none is handed over, until only one
//     is left.
//   - A try is in the queue only while it is not known whether what is ahead of it holds the lock
//     or waits for others: no hold is in its way, and the leader is still asking. refuseTriesLocked
//     sends the others away after each change. So a try waits for replies and never for a holder,
//     and one that fails with ErrNotAcquired has met a contender.
//   - A ticket is sent exactly one answer, or its goroutine takes it out of the queue
//     before that, never both. A goroutine that leaves after it was sent an answer passes
//     on what it got.
//   - A place is passed on only if it could be granted now: the session is alive, a
//     quarter of the lease is left, the node exists, no Txn under it is in doubt, and the
//     node grants the mode of the next holder. It is passed on for handover_time after its
//     first grant and, if another contender is or may be in ZooKeeper's queue, at most
//     handover_limit times. So no other process starves.
//   - No caller holds a kept place, and nothing else wants the name: if kept is set, there is
//     no leader and no hold, and the queue is empty. While there is no other contender in
//     ZooKeeper's queue, a place that was kept is passed on without limits; see place.Place.Keep.
//   - Readers join a hold only for handover_time after the first grant of its place. They join
//     only while no writer of this client waits, and only from an empty queue or from its front.
//     Only so can a reader get the lock before a writer of another process that queued earlier.
type turnstile struct {
	turnstiles *turnstiles
	path       string

	uses    int32 // guarded by turnstiles.mu; how many acquisitions under way and holds use it
	waiting int32 // guarded by turnstiles.mu; how many of the acquisitions have to wait for other contenders
	kept    bool  // set under mu and turnstiles.mu, so either of them guards it; standby is active: the client keeps its place

	holds           int32 // guarded by mu; how many are not over
	separateWriters int32 // guarded by mu; writers that acquire with a separate place, such as All's: see makeWay
	mu              mutex.Mutex[mutex.Outer]
	queue           list.List // guarded by mu; of *ticket, without the leader's
	tries           int       // guarded by mu; how many of them are tries
	leader          *ticket   // guarded by mu
	grants          *request  // guarded by mu; the request that a place is being passed on to; nil: there is none
	granted         sync.Cond // of mu; grants has been cleared
	current         *hold     // guarded by mu; the newest hold, nil if that is over
	noSessionSince  time.Time // used by the leader only; see acquire

	standby *standby // guarded by mu; the newest one, active or not

	leaderWaits chan struct{} // guarded by mu; the channel of the readers that ask together with the leader; nil: there are none
}

// ticket is one goroutine's entry in a turnstile's queue. The answer that it waits for is a lock,
// or else the lead, perhaps with a place to begin with.
type ticket struct {
	r     *request
	since time.Time
	at    *list.Element // guarded by the turnstile's mu; nil if the answer was sent, or is about to be

	answered chan struct{} // closed when the next three are set
	lock     *Lock
	start    *place.Place
	refused  bool // it is a try's, and there is another contender: neither lock nor lead

	desk        *place.Desk     // guarded by the turnstile's mu; it is the leader's: the session that it asks on; nil: it has none yet
	met         bool            // guarded by the turnstile's mu; it is the leader's, and has met another contender on that session
	waits       bool            // guarded by the turnstile's mu; it is the leader's, and has to wait for other contenders
	leaderWaits <-chan struct{} // set when it is made; see leaderWaitsLocked
}

// newTicket returns the ticket of a request that is not in the queue yet.
func newTicket(r *request) *ticket {
	return &ticket{r: r, answered: make(chan struct{}), since: time.Now()}
}

// answer sends the ticket its answer.
func (tk *ticket) answer(lock *Lock, start *place.Place) {
	tk.lock, tk.start = lock, start
	close(tk.answered)
}

// enter puts a request into the queue, or serves it at once. It returns one of three: a lock, with
// the standby whose place it was granted, if it was; the ticket of a request in the queue; or
// nothing, if the request should take a separate place, because it is a try, and only readers are
// ahead of it, or a leader that has lost its connection.
func (t *turnstile) enter(r *request) (lock *Lock, from *standby, tk *ticket, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.grants != nil {
		t.granted.Wait()
	}
	if t.queue.Len() == 0 {
		if l := t.shareLocked(r); l != nil {
			return l, nil, nil, nil
		}
	}
	if s := t.standby; t.kept {
		if granted, tk := t.takeUpLocked(r); !granted {
			return nil, nil, tk, nil
		}
		return r.lock, s, nil, nil
	}
	if r.Try {
		if apart, err := t.screenLocked(r); apart || err != nil {
			return nil, nil, nil, err
		}
	}
	tk = newTicket(r)
	tk.leaderWaits = t.leaderWaitsLocked(r)
	if tk.at = t.queue.PushBack(tk); r.Try {
		t.tries++
	}
	t.serveLocked(nil)
	return nil, nil, tk, nil
}

// shareLocked has a reader join the current hold. It returns nil if the request is a
// writer's, or if the hold may not be joined now.
func (t *turnstile) shareLocked(r *request) *Lock {
	h := t.current
	if h == nil || !r.Mode.Joins() || !h.shared() || t.separateWriters > 0 || t.leader != nil && t.leader.r.Mode.Excludes(r.Mode) ||
		!h.place.MayJoin(t.turnstiles.cfg.handoverTime) {
		return nil
	}
	l := h.join(r)
	if l != nil {
		t.turnstiles.served(r, nil)
	}
	return l
}

// serveLocked serves the first tickets of the queue as far as possible. Readers join a
// shared hold. The first request that needs a place, and may go ahead, becomes the leader.
// It gets start, if that is not nil, to continue with or to replace. If there is not
// a new leader, serveLocked returns start, and the caller gives it up.
func (t *turnstile) serveLocked(start *place.Place) *place.Place {
	t.refuseTriesLocked()
	for t.leader == nil && t.grants == nil {
		first := t.queue.Front()
		if first == nil {
			return start
		}
		tk := first.Value.(*ticket)
		if l := t.shareLocked(tk.r); l != nil {
			t.unqueueLocked(tk)
			tk.answer(l, nil)
			continue
		}
		if t.holds > 0 && !t.passableLocked(tk.r) {
			return start
		}
		t.unqueueLocked(tk)
		t.leader = tk
		tk.answer(nil, start)
		return nil
	}
	return start
}

// passableLocked reports whether a request may take a place although goroutines of this client
// hold the lock. If a writer holds it, the request may not. If readers hold it, another reader
// may. A writer may too, and waits in the place, but not if the newest readers hold a writer's node:
// such a node keeps readers of other processes out already, and the writer gets it when they release
// it.
func (t *turnstile) passableLocked(r *request) bool {
	return t.sharedLocked() && (r.Mode.Joins() || t.current == nil || !t.current.place.Handover().Mode.Covers(r.Mode))
}

// sharedLocked reports whether all holds are shared; it is true if there are none. An
// exclusive hold is always the only one, so it is enough to look at the newest.
func (t *turnstile) sharedLocked() bool { return t.current == nil || t.current.shared() }

// unqueueLocked takes a ticket out of the queue.
func (t *turnstile) unqueueLocked(tk *ticket) {
	t.queue.Remove(tk.at)
	if tk.at = nil; tk.r.Try {
		t.tries--
	}
}

// leave takes a ticket out of the queue. If the ticket was already sent its answer, leave
// passes on what it got.
func (t *turnstile) leave(tk *ticket) {
	t.mu.Lock()
	if tk.at != nil {
		t.unqueueLocked(tk)
		t.serveLocked(nil) // it may have been the only writer, which kept readers from joining
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	<-tk.answered // at was cleared, so the answer was sent or is about to be
	switch {
	case tk.refused:
	case tk.lock != nil:
		tk.lock.hold.drop(tk.lock)
	default:
		t.led(nil, tk.start)
	}
}

// led ends a goroutine's time as the leader. got is the lock that it acquired, nil if it
// failed. left, if not nil, is a place for the next leader.
func (t *turnstile) led(got *Lock, left *place.Place) {
	t.mu.Lock()
	t.leader = nil
	if got != nil {
		t.beginLocked(got.hold)
	}
	left = t.serveLocked(left)
	t.mu.Unlock()
	if left != nil {
		left.Remove()
	}
}

// beginLocked counts a new hold if it is not over: it may have been lost since its grant, and
// serve may have been called before.
func (t *turnstile) beginLocked(h *hold) {
	if !h.isOver() {
		t.holds++
		t.current = h
		h.counted = true
	}
}

// endLocked removes a hold from the count.
func (t *turnstile) endLocked(h *hold) {
	if h.counted {
		h.counted = false
		t.holds--
	}
	if t.current == h {
		t.current = nil
	}
}

// serve serves the queue when a hold has changed: lost is over or, if lost is nil, a writer's has
// become a reader's.
func (t *turnstile) serve(lost *hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if lost != nil {
		t.endLocked(lost)
	}
	t.serveLocked(nil)
}

// aheadLocked describes which contender a ticket in the queue waits for: the newest hold, or
// else the leader. position is how many are ahead of the last ticket.
func (t *turnstile) aheadLocked() (position int, ahead Contender) {
	position = t.queue.Len()
	ahead = Contender{Host: t.turnstiles.cfg.Host, PID: t.turnstiles.cfg.PID}
	switch {
	case t.current != nil:
		h := t.current
		o := h.Origin()
		ahead.Mode, ahead.Trace, ahead.Label, ahead.Held = Mode(h.currentMode()), o.Trace, o.Label, true
		ahead.Node, ahead.Since, ahead.Candidacy = h.place.Node(), h.place.Granted, h.candidacy
	case t.grants != nil:
		ahead.Mode, ahead.Trace, ahead.Label = Mode(t.grants.Mode), t.grants.Origin.Trace, t.grants.Origin.Label
	case t.leader != nil:
		ahead.Mode, ahead.Trace, ahead.Label = Mode(t.leader.r.Mode), t.leader.r.Origin.Trace, t.leader.r.Origin.Label
	}
	return position, ahead
}

// acquire acquires a lock that takes part in hand-over.
func (t *turnstile) acquire(r *request) (*Lock, error) {
	lock, from, tk, err := t.enter(r)
	switch {
	case from != nil:
		t.turnstiles.reportHandover(r.Ctx, lock, from.trace) // which changes only after the release of this lock
		return lock, nil
	case lock != nil || err != nil:
		return lock, err
	case tk == nil:
		return t.acquireAlone(r)
	}
	switch err := t.await(tk); {
	case err != nil:
		return nil, err
	case tk.lock != nil:
		return tk.lock, nil
	}
	// If the last leader had no usable session, the goroutines behind it had none either, so
	// connect_timeout does not begin again for them.
	if since := t.noSessionSince; since.After(tk.since) {
		r.NoSessionSince = since
	} else if !since.IsZero() {
		r.NoSessionSince = tk.since
	}
	left, err := t.take(r, tk.start)
	t.noSessionSince = r.NoSessionSince
	t.led(r.lock, left)
	return r.lock, err
}
