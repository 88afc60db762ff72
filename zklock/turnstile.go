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

// turnstile is the local queue of one name: goroutines of one client that want
// the name queue here, first come first served, behind one place in the
// ensemble's queue. The first of them, the leader, gets that place; the others
// wait on a channel. A holder that is done passes the place on to the next of
// them without any request to the ensemble, as long as that is fair to other
// processes; then the next becomes leader and gets a new place at the tail, in
// one request that gives up the old one.
//
// Readers share a hold. One that comes when that is no longer fair gets a place
// of its own beside it, so there may be several holds at a time, all shared.
//
// Invariants:
//   - There is a leader, or a hold that shuts everybody else out, or nobody
//     waits: serveLocked, called after every change, sees to it. A writer behind readers
//     leads, unless it may get their node: it takes its place in the ensemble's
//     queue at once, so that readers of other processes do not pass it.
//   - Several holds are all shared, and none is handed over: the last one may be.
//   - A ticket is sent exactly one turn, or is taken out of the queue by its
//     owner before that, never both. An owner that leaves after it was sent one
//     passes on what it got.
//   - A place is passed on only while it could be granted anew: session alive,
//     a quarter of the lease left, not gone, no Txn under it in doubt; only for a
//     mode that its node grants; for handover_time after it was granted; and,
//     where another contender is or may be in the queue, handover_limit times. So
//     no other process starves.
//   - Readers join a hold for handover_time after its place was granted, and only
//     while no writer of this client waits, and nobody else in the queue here.
//     That is the one way in which a reader can get in
//     before a writer that queued earlier, in another process.
type turnstile struct {
	all  *turnstiles
	path string

	uses    int // guarded by all.mu; acquisitions under way, and holds
	waiting int // guarded by all.mu; those acquisitions that have to wait for others

	aside atomic.Int32 // writers that wait with a place of their own, such as All's

	mu      sync.Mutex
	queue   list.List // guarded by mu; of *ticket
	leader  *ticket   // guarded by mu
	holds   int       // guarded by mu; not over
	current *hold     // guarded by mu; the newest of them, nil if that is over
	stretch time.Time // guarded by mu; since when leaders have had no session; zero if the last one had

	asking chan struct{} // guarded by mu; what the readers along with the leader have; nil: there are none
}

// ticket is one goroutine's place in a turnstile's queue.
type ticket struct {
	r     *request
	turn  chan turn // cap 1
	since time.Time
	at    *list.Element

	stuck bool            // guarded by the turnstile's mu; it is the leader, and has to wait for others
	along <-chan struct{} // set on entry; see alongLocked
}

// turn is what a ticket is sent: a handle, or else the lead and maybe a place to
// begin with.
type turn struct {
	lock    *Lock
	start   *place.Place
	stretch time.Time
}

// entry is what a request comes to that enters a turnstile: one of these.
type entry struct {
	lock   *Lock   // it is served: it shares what is held
	alone  bool    // it should get a place of its own: a try that shared holds do not block
	ticket *ticket // it is in the queue
}

// enter queues a request, or serves it at once.
func (t *turnstile) enter(r *request) (entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue.Len() == 0 {
		if l := t.shareLocked(r); l != nil {
			return entry{lock: l}, nil
		}
	}
	if r.Try && (t.leader != nil || t.holds > 0 || t.queue.Len() > 0) {
		readers := t.queue.Len() == 0 && (t.holds == 0 || t.sharedLocked()) && (t.leader == nil || t.leader.r.Mode == queue.Shared)
		if r.Mode == queue.Shared && readers {
			return entry{alone: true}, nil
		}
		return entry{}, errs.ErrTaken
	}
	tk := &ticket{r: r, turn: make(chan turn, 1), since: time.Now(), along: t.alongLocked(r)}
	tk.at = t.queue.PushBack(tk)
	t.serveLocked(nil)
	return entry{ticket: tk}, nil
}

// shareLocked joins a reader to the current hold if that may be shared.
func (t *turnstile) shareLocked(r *request) *Lock {
	h := t.current
	if h == nil || r.Mode != queue.Shared || !h.shared() || t.aside.Load() > 0 || t.leader != nil && t.leader.r.Mode == queue.Exclusive ||
		time.Since(h.place.Granted) >= t.all.cfg.handoverTime || !h.place.Leased() {
		return nil
	}
	l := h.join(r.Ctx)
	if l != nil {
		t.all.joined(r)
	}
	return l
}

// serveLocked serves the front of the queue as far as that is possible now:
// readers join a shared hold, and the first who has to and can get a place of
// its own becomes the leader, with spare to go on with or to replace. If nobody
// does, spare is returned, for the caller to give up.
func (t *turnstile) serveLocked(spare *place.Place) *place.Place {
	for t.leader == nil {
		first := t.queue.Front()
		if first == nil {
			return spare
		}
		tk := first.Value.(*ticket)
		if l := t.shareLocked(tk.r); l != nil {
			t.popLocked()
			tk.turn <- turn{lock: l}
			continue
		}
		if t.holds > 0 && !t.passableLocked(tk.r) {
			return spare
		}
		t.popLocked()
		t.leader = tk
		tk.turn <- turn{start: spare, stretch: t.stretch}
		return nil
	}
	return spare
}

// passableLocked reports whether a request may go ahead beside what is held here,
// with a place of its own. A writer goes and waits behind readers; but where they
// hold a writer's node, which keeps other processes out, it gets that by and by.
func (t *turnstile) passableLocked(r *request) bool {
	return t.sharedLocked() && (r.Mode == queue.Shared || t.current == nil || t.current.place.Readers())
}

// sharedLocked reports whether what is held, if anything is, is held by readers.
// Where several holds were, all of them are shared.
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

// leave takes a ticket out of the queue. If it was sent its turn already, that
// is passed on.
func (t *turnstile) leave(tk *ticket) {
	t.mu.Lock()
	if tk.at != nil {
		t.queue.Remove(tk.at)
		tk.at = nil
		t.serveLocked(nil) // it may have been a writer, and all that kept readers out
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	got := <-tk.turn // it was sent before at was cleared
	if got.lock != nil {
		got.lock.hold.drop(got.lock)
		return
	}
	t.led(nil, got.start, got.stretch)
}

// led ends the lead: with a lock, or with none and maybe a place that is left
// over. stretch says since when the leader had no usable session, if it had
// none: those who have waited behind it had none either, and do not begin anew.
func (t *turnstile) led(got *Lock, left *place.Place, stretch time.Time) {
	t.mu.Lock()
	t.leader = nil
	t.stretch = stretch
	if got != nil {
		t.beginLocked(got.hold)
	}
	left = t.serveLocked(left)
	t.mu.Unlock()
	if left != nil {
		left.Remove()
	}
}

// beginLocked counts a new hold in, unless it was lost since its grant: lost is
// told of each loss and may have come before.
func (t *turnstile) beginLocked(h *hold) {
	if !h.isOver() {
		t.holds++
		t.current = h
		h.counted = true
	}
}

// endLocked counts a hold out.
func (t *turnstile) endLocked(h *hold) {
	if h.counted {
		h.counted = false
		t.holds--
	}
	if t.current == h {
		t.current = nil
	}
}

// pass passes the place of a hold that is over on to the next in the queue: as it
// is, which is a hand-over, or to be replaced. If it is not taken, the place is
// the caller's to give up.
func (t *turnstile) pass(h *hold) (taken, handed bool) {
	t.mu.Lock()
	t.endLocked(h)
	if t.queue.Len() == 0 || t.holds > 0 || t.leader != nil {
		t.serveLocked(nil)
		t.mu.Unlock()
		return false, false
	}
	next := t.queue.Front().Value.(*ticket)
	granted := false
	if h.place.MayPass(next.r.Mode, t.all.cfg.handoverLimit, t.all.cfg.handoverTime) {
		if granted = h.place.Grant(next.r); !granted {
			h.place.Reserve() // whatever it lacks, it comes to the next one
		}
	}
	if !granted {
		spare := t.serveLocked(h.place)
		t.mu.Unlock()
		return spare == nil, false
	}
	if next.r.Mode == queue.Shared {
		t.shareWhenDueLocked(h.place, next.r)
	}
	lock := next.r.lock
	heir := lock.hold
	t.popLocked()
	t.beginLocked(heir)
	t.serveLocked(nil)
	t.mu.Unlock()
	t.all.counters.handovers.Add(1)
	// Before the next one goes on: its own wait ends after it was told of.
	if hook := t.all.hooks.handover; hook != nil {
		hook(next.r.Ctx, HandoverEvent{Name: heir.name, Mode: Mode(next.r.Mode), Turn: lock.token.Turn, From: h.origin.Trace, To: heir.origin.Trace})
	}
	next.turn <- turn{lock: lock}
	return true, true
}

// lost tells the turnstile that a hold was lost.
func (t *turnstile) lost(h *hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(h)
	t.serveLocked(nil)
}

// changed tells the turnstile that a hold has become a shared one.
func (t *turnstile) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serveLocked(nil)
}

// ahead describes whom a ticket that waits here waits for.
func (t *turnstile) ahead() (position int, ahead Contender) {
	t.mu.Lock()
	defer t.mu.Unlock()
	position = t.queue.Len()
	ahead = Contender{Host: t.all.cfg.Host, PID: t.all.cfg.PID}
	switch {
	case t.current != nil:
		h := t.current
		ahead.Mode, ahead.Trace, ahead.Label, ahead.Held = Mode(h.currentMode()), h.origin.Trace, h.origin.Label, true
		ahead.Node, ahead.Since = h.place.Node(), h.place.Granted
	case t.leader != nil:
		ahead.Mode, ahead.Trace, ahead.Label = Mode(t.leader.r.Mode), t.leader.r.Origin.Trace, t.leader.r.Origin.Label
	}
	return position, ahead
}

// acquire gets a request through the turnstile.
func (t *turnstile) acquire(ctx context.Context, r *request) (*Lock, error) {
	in, err := t.enter(r)
	switch {
	case err != nil:
		return nil, err
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
	if got.stretch.After(tk.since) {
		r.Since = got.stretch
	} else if !got.stretch.IsZero() {
		r.Since = tk.since
	}
	left, err := t.take(ctx, r, got.start)
	t.led(r.lock, left, r.Since)
	return r.lock, err
}
