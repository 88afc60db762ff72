package local

import (
	"container/list"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Queue is the local queue of a name: a client's own, in front of ZooKeeper's. The goroutines of the client that want the name
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
//   - No caller holds a kept place, and nothing else wants the name: if kept is active, there is
//     no leader and no hold, and the queue is empty. While there is no other contender in
//     ZooKeeper's queue, a place that was kept is passed on without limits; see place.Place.Keep.
//   - Readers join a hold only for handover_time after the first grant of its place. They join
//     only while no writer of this client waits, and only from an empty queue or from its front.
//     Only so can a reader get the lock before a writer of another process that queued earlier.
type Queue struct {
	queues *Queues
	path   string

	uses    int32 // guarded by Queues.mu; how many acquisitions under way and holds use it
	waiting int32 // guarded by Queues.mu; how many of the acquisitions have to wait for other contenders

	holds           int32 // guarded by mu; how many are not over, without those of separate places
	separateWriters int32 // guarded by mu; writers that acquire with a separate place, such as All's: see makeWay
	mu              mutex.Mutex[mutex.Outer]
	waiters         list.List    // guarded by mu; of *ticket, without the leader's
	tries           int          // guarded by mu; how many of them are tries
	writers         int          // guarded by mu; how many of them keep readers out
	leader          *ticket      // guarded by mu
	agent           *agent       // guarded by mu; it has the leader's ticket; nil: the leader is a caller
	lead            waitingPlace // guarded by mu; of the leader; see leaderMeets
	grants          *Request     // guarded by mu; the request that a place is being passed on to; nil: there is none
	granted         sync.Cond    // of mu; grants has been cleared
	current         *Hold        // guarded by mu; the newest hold, nil if that is over
	noSessionSince  time.Time    // used by the leader only; see acquire

	patience patience
	kept     *keptPlace // set under mu and Queues.mu, so either of them guards it; the newest one, active or not

	leaderWaits chan struct{} // guarded by mu; the channel of the readers that ask together with the leader; nil: there are none
}

// shareLocked has a reader join the current hold. It returns false if the request is a
// writer's, or if the hold may not be joined now.
func (q *Queue) shareLocked(r *Request) bool {
	h := q.current
	if h == nil || !r.Mode.Joins() || !h.shared() || q.separateWriters > 0 || q.leader != nil && q.leader.r.Mode.Excludes(r.Mode) ||
		!h.place.MayJoin(q.queues.cfg.HandoverTime) {
		return false
	}
	joined := h.Join(r)
	if joined {
		q.served(r, nil)
	}
	return joined
}

// serveLocked serves the first tickets of the queue as far as possible. Readers join a
// shared hold. The first request that needs a place, and may go ahead, becomes the leader.
// It gets start, if that is not nil, to continue with or to replace. If there is not
// a new leader, serveLocked returns start, and the caller gives it up.
func (q *Queue) serveLocked(start *place.Place) *place.Place {
	q.refuseTriesLocked()
	for q.leader == nil && q.grants == nil && (q.holds == 0 || q.sharedLocked()) { // else the holder excludes all others
		tk := q.nextLocked(queue.Exclusive, true)
		if tk == nil {
			return start
		}
		if q.shareLocked(tk.r) {
			q.unqueueLocked(tk)
			tk.answer(true, nil)
			continue
		}
		if q.holds > 0 && !q.passableLocked(tk.r) {
			return start
		}
		q.unqueueLocked(tk)
		q.leader, q.lead = tk, waitingPlace{}
		tk.answer(false, start)
		return nil
	}
	return start
}

// passableLocked reports whether a request may take a place although goroutines of this client
// hold the lock. If a writer holds it, the request may not. If readers hold it, another reader
// may. A writer may too, and waits in the place, but not if the newest readers hold a writer's node:
// such a node keeps readers of other processes out already, and the writer gets it when they release
// it.
func (q *Queue) passableLocked(r *Request) bool {
	return q.sharedLocked() && (r.Mode.Joins() || q.current == nil || !q.current.place.Handover().Mode.Covers(r.Mode))
}

// sharedLocked reports whether all holds are shared; it is true if there are none. An
// exclusive hold is always the only one, so it is enough to look at the newest.
func (q *Queue) sharedLocked() bool { return q.current == nil || q.current.shared() }

// unqueueLocked takes a ticket out of the queue.
func (q *Queue) unqueueLocked(tk *ticket) {
	q.waiters.Remove(tk.at)
	tk.at = nil
	q.countLocked(tk, -1)
}

// countLocked adds n to the counts that a ticket of the queue belongs to.
func (q *Queue) countLocked(tk *ticket, n int) {
	switch {
	case tk.r.Try:
		q.tries += n
	case tk.keepsReadersOut():
		q.writers += n
	}
}

// led ends a goroutine's time as the leader. got is the hold that it was granted, nil if it
// failed. left, if not nil, is a place for an agent or the next leader.
func (q *Queue) led(got *Hold, left *place.Place) {
	q.mu.Lock()
	was := q.leader
	q.leader, q.agent = nil, nil
	if got != nil {
		q.beginLocked(got)
	}
	if left != nil && q.delegateLocked(left, was) {
		left = nil
	}
	left = q.serveLocked(left)
	q.mu.Unlock()
	if left != nil {
		left.Remove()
	}
}

// beginLocked counts a new hold if it is not over: it may have been lost since its grant, and
// serve may have been called before.
func (q *Queue) beginLocked(h *Hold) {
	if !h.IsOver() {
		q.holds++
		q.current = h
		h.counted = true
	}
}

// endLocked removes a hold from the count.
func (q *Queue) endLocked(h *Hold) {
	if h.counted {
		h.counted = false
		q.holds--
	}
	if q.current == h {
		q.current = nil
	}
}

// serve serves the queue when a hold has changed: lost is over or, if lost is nil, a writer's has
// become a reader's.
func (q *Queue) serve(lost *Hold) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if lost != nil {
		q.endLocked(lost)
	}
	q.serveLocked(nil)
}

// aheadLocked describes which contender a ticket in the queue waits for: the newest hold, or
// else the leader. Its position is how many are ahead of the last ticket.
func (q *Queue) aheadLocked() Ahead {
	ahead := Ahead{Position: q.waiters.Len(), Local: true}
	switch {
	case q.current != nil:
		h := q.current
		ahead.Entry.Kind.Mode, ahead.Origin = h.describe()
		ahead.Held = true
		ahead.Entry.Name, ahead.Granted, ahead.Candidacy = h.place.Node(), h.place.Granted, h.candidacy
	case q.grants != nil:
		ahead.Entry.Kind.Mode, ahead.Origin = q.grants.Mode, q.grants.Origin
	case q.agent != nil && q.agent.ahead.Position > 0:
		ahead = q.agent.ahead.behind(ahead.Position)
	case q.leader != nil:
		ahead.Entry.Kind.Mode, ahead.Origin = q.leader.r.Mode, q.leader.r.Origin
	}
	return ahead
}

// metLocked reports whether the leader has met another contender, and still has its place. cut: its
// session has no connection now.
func (q *Queue) metLocked() (met, cut bool) {
	if q.leader == nil || !q.leader.met || q.leader.desk.Session.IsOver() {
		return false, false
	}
	return true, !q.leader.desk.Session.CutSince().IsZero() // TestTryBehindAWaiterThatIsCutOff
}

// keepsReadersOut reports whether readers that queue behind a ticket wait for it.
func (tk *ticket) keepsReadersOut() bool { return !tk.r.Try && !tk.r.Mode.Joins() }

// refusesLocked reports whether a try would have to wait for another contender. It would not behind
// a leader that is still asking. writer: a writer waits ahead of it in the queue.
func (q *Queue) refusesLocked(r *Request, writer bool) bool {
	if met, _ := q.metLocked(); met || q.holds == 0 {
		return met
	}
	return !r.Mode.Joins() || !q.sharedLocked() || writer || q.leader != nil && !q.leader.r.Mode.Joins()
}

// refuseTriesLocked sends the tries away that would have to wait for another contender. It is called
// after each change that may show one.
func (q *Queue) refuseTriesLocked() {
	if q.tries == 0 {
		return
	}
	ahead := q.aheadLocked()
	ahead.Position = 1 // of what aheadLocked describes
	writer := false
	for at := q.waiters.Front(); at != nil; {
		tk, next := at.Value.(*ticket), at.Next()
		if writer = writer || tk.keepsReadersOut(); tk.r.Try && q.refusesLocked(tk.r, writer) {
			tk.r.Caller.Sees(ahead)
			q.unqueueLocked(tk)
			tk.refused = true
			tk.answer(false, nil)
		} else {
			ahead.Position++
		}
		at = next
	}
}

// delegateLocked has an agent lead with a place that the leader has left. It returns false if the place is
// of no use to an agent. What the leader has met with that place is still ahead of it, as far as is known.
func (q *Queue) delegateLocked(left *place.Place, was *ticket) bool {
	a := newAgent(q.queues, q, &q.patience, left, was.r)
	if a != nil {
		a.met = was.met && was.desk == left.Desk // TestWaitThatEndsWhileAnAgentLooks
		q.leader, q.agent, q.lead = &a.ticket, a, waitingPlace{}
	}
	return a != nil
}

// nextLocked returns the ticket that is next for a place of a mode; nil if there is none. For leads see nextOf.
func (q *Queue) nextLocked(mode queue.Mode, leads bool) *ticket {
	return nextOf(&q.waiters, leads, func(tk *ticket) bool { return mode.Covers(tk.r.Mode) })
}

// hasLed notes since when a leader that has the lock now has led; a zero time is not known.
func (q *Queue) hasLed(r *Request, since time.Time) {
	if since.IsZero() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.patience.ledLocked(r, since)
}

// gaveUp notes that the caller of a leader's ticket has given up.
func (q *Queue) gaveUp(tk *ticket) {
	deadline, _ := tk.r.Ctx.Deadline()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.patience.leftLocked(tk.r, tk.since, deadline)
}
