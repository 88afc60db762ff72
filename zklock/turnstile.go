package zklock

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// turnstile is a client's own queue for one name. The goroutines of the client that want
// the name queue here, in the order in which they come, behind one place in ZooKeeper's
// queue. The first of them, the leader, takes that place; the others wait on a channel. A
// release passes the place on to the next goroutine without a request, as long as that is
// fair to other processes. After that the next goroutine becomes the leader, and takes a
// new place at the end of ZooKeeper's queue; the same request gives up the old place.
//
// Readers share a hold. A reader that comes when joining would not be fair any more takes
// a separate place. So there may be several holds at a time, which are then all shared.
//
// Invariants:
//   - There is a leader, or a hold that excludes the first in the queue, or the queue is
//     empty. serveLocked makes it so after each change.
//   - A writer behind readers becomes the leader, unless the readers have a node that it
//     may get. So it takes its place in ZooKeeper's queue at once, and readers of other
//     processes do not pass it.
//   - If there are several holds, all are shared and none is handed over, until only one
//     is left.
//   - A ticket is sent exactly one answer, or its goroutine takes it out of the queue
//     before that, never both. A goroutine that leaves after it was sent an answer passes
//     on what it got.
//   - A place is passed on only if it could be granted now: the session is alive, a
//     quarter of the lease is left, the node exists, no Txn under it is in doubt, and the
//     node grants the mode of the next holder. It is passed on for handover_time after its
//     first grant and, if another contender is or may be in ZooKeeper's queue, at most
//     handover_limit times. So no other process starves.
//   - A kept place has no hold, and nothing else wants the name: if standby is set, there is
//     no leader and no hold, and the queue is empty. While there is no other contender in
//     ZooKeeper's queue, a place that was kept is passed on without limits; see place.Place.Keep.
//   - Readers join a hold only for handover_time after the first grant of its place. They
//     join only while no writer of this client waits, and only from an empty queue or from
//     its front. This is the one way in which a reader can get the lock before a writer of
//     another process that queued earlier.
type turnstile struct {
	turnstiles *turnstiles
	path       string

	uses        int32 // guarded by turnstiles.mu; how many acquisitions under way and holds use it
	standbyUses bool  // guarded by turnstiles.mu; one of the uses is the standby's
	waiting     int32 // guarded by turnstiles.mu; how many of the acquisitions have to wait for other contenders

	separateWriters atomic.Int32 // writers that acquire with a separate place, such as All's; while there are any, no reader joins

	holds          int32 // guarded by mu; how many are not over
	mu             sync.Mutex
	queue          list.List // guarded by mu; of *ticket, without the leader's
	leader         *ticket   // guarded by mu
	current        *hold     // guarded by mu; the newest hold, nil if that is over
	noSessionSince time.Time // guarded by mu; since when leaders have had no usable session; zero if the last one had one

	standby *standby // guarded by mu; has the place that the client keeps for the name; nil: none
	last    *standby // guarded by mu; the newest one, to be used again for its place

	leaderWaits chan struct{} // guarded by mu; the channel of the readers that ask together with the leader; nil: there are none
}

// ticket is one goroutine's entry in a turnstile's queue.
type ticket struct {
	r      *request
	answer chan answer // cap 1; what the ticket has waited for
	since  time.Time
	at     *list.Element

	waits       bool            // guarded by the turnstile's mu; it is the leader's, and has to wait for other contenders
	leaderWaits <-chan struct{} // set when it is made; see leaderWaitsLocked
}

// answer is what a ticket is sent: a lock, or else the lead, perhaps with a place to begin
// with.
type answer struct {
	lock           *Lock
	start          *place.Place
	noSessionSince time.Time
}

// entry is the result of entering a turnstile: one of its fields is set.
type entry struct {
	lock   *Lock   // the request has it: it joined a hold
	alone  bool    // the request should take a separate place: it is a try, and only readers are ahead of it
	handed string  // with lock: the traceparent of the holder before, if a kept place was taken up
	kept   bool    // with lock: a kept place was taken up
	ticket *ticket // the request is in the queue
}

// enter puts a request into the queue, or serves it at once.
func (t *turnstile) enter(r *request) (entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue.Len() == 0 {
		if l := t.shareLocked(r); l != nil {
			return entry{lock: l}, nil
		}
	}
	var start *place.Place
	if s := t.standby; s != nil {
		var granted bool
		if granted, start = t.takeUpLocked(r); granted {
			return entry{lock: r.lock, kept: true, handed: s.trace}, nil
		}
	}
	if r.Try && (t.leader != nil || t.holds > 0 || t.queue.Len() > 0) {
		readers := t.queue.Len() == 0 && (t.holds == 0 || t.sharedLocked()) && (t.leader == nil || t.leader.r.Mode == queue.Shared)
		if r.Mode == queue.Shared && readers {
			return entry{alone: true}, nil
		}
		position, ahead := t.aheadLocked()
		r.sees(position+1, &ahead)
		return entry{}, errs.ErrTaken
	}
	tk := &ticket{r: r, answer: make(chan answer, 1), since: time.Now(), leaderWaits: t.leaderWaitsLocked(r)}
	tk.at = t.queue.PushBack(tk)
	t.serveLocked(start) // if start is set, the queue was empty, and tk is the new leader
	return entry{ticket: tk}, nil
}

// shareLocked has a reader join the current hold. It returns nil if the request is a
// writer's, or if the hold may not be joined now.
func (t *turnstile) shareLocked(r *request) *Lock {
	h := t.current
	if h == nil || r.Mode != queue.Shared || !h.shared() || t.separateWriters.Load() > 0 || t.leader != nil && t.leader.r.Mode == queue.Exclusive ||
		!h.place.MayJoin(t.turnstiles.cfg.handoverTime) {
		return nil
	}
	l := h.join(r.Ctx)
	if l != nil {
		t.turnstiles.joined(r)
	}
	return l
}

// serveLocked serves the first tickets of the queue as far as possible. Readers join a
// shared hold. The first request that needs a place, and may go ahead, becomes the leader.
// It gets start, if that is not nil, to continue with or to replace. If there is not
// a new leader, serveLocked returns start, and the caller gives it up.
func (t *turnstile) serveLocked(start *place.Place) *place.Place {
	for t.leader == nil {
		first := t.queue.Front()
		if first == nil {
			return start
		}
		tk := first.Value.(*ticket)
		if l := t.shareLocked(tk.r); l != nil {
			t.popLocked()
			tk.answer <- answer{lock: l}
			continue
		}
		if t.holds > 0 && !t.passableLocked(tk.r) {
			return start
		}
		t.popLocked()
		t.leader = tk
		tk.answer <- answer{start: start, noSessionSince: t.noSessionSince}
		return nil
	}
	return start
}

// passableLocked reports whether a request may take a place although goroutines of this
// client hold the lock. If a writer holds it, the request may not. If readers hold it,
// another reader may. A writer may too, and waits in the place, unless the newest readers
// hold a writer's node: that node keeps readers of other processes out already, and the
// writer gets it when the readers release it.
func (t *turnstile) passableLocked(r *request) bool {
	return t.sharedLocked() && (r.Mode == queue.Shared || t.current == nil || t.current.place.Standing().Mode == queue.Shared)
}

// sharedLocked reports whether all holds are shared; it is true if there are none. An
// exclusive hold is always the only one, so it is enough to look at the newest.
func (t *turnstile) sharedLocked() bool { return t.current == nil || t.current.shared() }

func (t *turnstile) popLocked() *ticket {
	first := t.queue.Front()
	if first == nil {
		return nil
	}
	tk := t.queue.Remove(first).(*ticket)
	tk.at = nil
	return tk
}

// leave takes a ticket out of the queue. If the ticket was already sent its answer, leave
// passes on what it got.
func (t *turnstile) leave(tk *ticket) {
	t.mu.Lock()
	if tk.at != nil {
		t.queue.Remove(tk.at)
		tk.at = nil
		t.serveLocked(nil) // it may have been the only writer, which kept readers from joining
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	got := <-tk.answer // at was cleared, so the answer was sent or is about to be
	if got.lock != nil {
		got.lock.hold.drop(got.lock)
		return
	}
	t.led(nil, got.start, got.noSessionSince)
}

// led ends a goroutine's time as the leader. got is the lock that it acquired, nil if it
// failed. left, if not nil, is a place for the next leader. noSessionSince is since when
// the leader had no usable session, zero if it had one. The goroutines behind the leader
// had none either, so connect_timeout does not begin again for them.
func (t *turnstile) led(got *Lock, left *place.Place, noSessionSince time.Time) {
	t.mu.Lock()
	t.leader = nil
	t.noSessionSince = noSessionSince
	if got != nil {
		t.beginLocked(got.hold)
	}
	left = t.serveLocked(left)
	t.mu.Unlock()
	if left != nil {
		left.Remove()
	}
}

// beginLocked counts a new hold, unless it is over already: it may have been lost since
// its grant, and holdLost may have been called before.
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

// pass gives the place of a hold that is over to the first in the queue: as it is, which
// is a hand-over (handed is true), or to continue with or replace as the leader. If taken
// is false, the caller gives the place up.
func (t *turnstile) pass(h *hold) (taken, handed bool) {
	t.mu.Lock()
	t.endLocked(h)
	if t.queue.Len() == 0 || t.holds > 0 || t.leader != nil {
		t.serveLocked(nil)
		kept := t.keepLocked(h)
		t.mu.Unlock()
		if kept {
			t.turnstiles.kept.settle()
		}
		return kept, kept
	}
	next := t.queue.Front().Value.(*ticket)
	if _, granted := t.grantLocked(h.place, next.r); !granted {
		left := t.serveLocked(h.place)
		t.mu.Unlock()
		return left == nil, false
	}
	lock := next.r.lock
	t.popLocked()
	t.serveLocked(nil)
	t.mu.Unlock()
	// The hook is called before the next holder's goroutine continues, so that the
	// hand-over is reported before the end of that goroutine's wait.
	t.turnstiles.reportHandover(next.r.Ctx, lock, h.Origin().Trace)
	next.answer <- answer{lock: lock}
	return true, true
}

// grantLocked begins a hold of a place that was held before, without a request, if that is
// fair to other processes. If it is, and only the lease is too short, the place is reserved:
// passable is true then, and the request becomes the leader with this place.
func (t *turnstile) grantLocked(p *place.Place, r *request) (passable, granted bool) {
	if !p.Standing().MayPass(r.Mode, t.turnstiles.cfg.handoverLimit, t.turnstiles.cfg.handoverTime) {
		return false, false
	}
	if !p.Grant(r) {
		p.Reserve()
		return true, false
	}
	if r.Mode == queue.Shared {
		t.shareWhenDueLocked(p)
	}
	t.beginLocked(r.lock.hold)
	return true, true
}

// reportHandover counts a hand-over and calls the hook. from is the traceparent of the
// acquisition that held the place before.
func (ts *turnstiles) reportHandover(ctx context.Context, lock *Lock, from string) {
	ts.counters.handovers.Add(1)
	if hook := ts.hooks.handover; hook != nil {
		h := lock.hold
		hook(ctx, HandoverEvent{Name: h.name, Mode: lock.Mode(), Turn: lock.token.Turn, From: from, To: h.Origin().Trace})
	}
}

// holdLost is called when a hold was lost.
func (t *turnstile) holdLost(h *hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(h)
	t.serveLocked(nil)
}

// holdShared is called when a writer's hold has become a reader's.
func (t *turnstile) holdShared() {
	t.mu.Lock()
	defer t.mu.Unlock()
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
		ahead.Node, ahead.Since = h.place.Node(), h.place.Granted
	case t.leader != nil:
		ahead.Mode, ahead.Trace, ahead.Label = Mode(t.leader.r.Mode), t.leader.r.Origin.Trace, t.leader.r.Origin.Label
	}
	return position, ahead
}

// acquire acquires a lock that takes part in hand-over.
func (t *turnstile) acquire(ctx context.Context, r *request) (*Lock, error) {
	in, err := t.enter(r)
	switch {
	case err != nil:
		return nil, err
	case in.kept:
		t.turnstiles.reportHandover(r.Ctx, in.lock, in.handed)
		return in.lock, nil
	case in.lock != nil:
		return in.lock, nil
	case in.alone:
		return t.acquireAlone(ctx, r)
	}
	tk := in.ticket
	got, err := t.await(ctx, tk)
	if err != nil {
		return nil, err
	}
	if got.lock != nil {
		return got.lock, nil
	}
	if got.noSessionSince.After(tk.since) {
		r.NoSessionSince = got.noSessionSince
	} else if !got.noSessionSince.IsZero() {
		r.NoSessionSince = tk.since
	}
	left, err := t.take(ctx, r, got.start)
	t.led(r.lock, left, r.NoSessionSince)
	return r.lock, err
}
