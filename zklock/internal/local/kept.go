package local

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A name is kept while its place stays in ZooKeeper's queue although no goroutine of this process wants
// it. The next acquisition is a hand-over then, without a request.
//
// What keeps a name: Queue.pass calls keepLocked for the place of a hold that was released. The client keeps the place if
//
//   - the client has the setting keep, and acquires more: it is not closed or shutting down;
//   - the place is on one name, of a kind that is kept (queue.Row.Keeps), and takes part in hand-over: it is
//     no separate place, such as All's or that of a try among readers;
//   - no goroutine of this process holds the name with a place that takes part in hand-over, waits for it, or
//     writes with a separate place. A reader with a separate place does not count: the client meets its node
//     when it lists the queue next, and gives the kept one up;
//   - place.Place.Keep allows it. The name was used several times in a row without a contender of
//     others, no other contender is in ZooKeeper's queue, the outcome of its create was known, the place did
//     not replace another one, it is not revoked, has turns left, and its session is alive and not about to be
//     replaced. Nothing may be under way that counts on the last holder: a Txn in doubt, or the removal of a
//     registered wait that lists the lock (package deadlock).
//
// What ends that: keptPlace.endLocked does, and is called
//
//   - by takeUpLocked, for the next acquisition of the name;
//   - by Recalled, when ZooKeeper's queue has changed, or could not be listed: another contender
//     may be there;
//   - by endOld, when the time keep has passed. A session that is being replaced stays until then;
//   - by settle, for the place kept longest, while there are more than keep_max;
//   - by makeRoom, for the place kept longest, while no session has room for another one;
//   - by makeWay, for an acquisition of this client that takes a separate place;
//   - by Revoke, when the node's data ask for the lock;
//   - by Vacate, when the session is lost, or when another client has deleted the node:
//     place.guard finds that out, place.Place.Lose evicts the kept place from its session, and
//     session.Session.Evict calls Vacate;
//   - by Refuse, for Close and Shutdown.

// keptPlace is the holder of a place that is kept: it has the place as the hold of a lock would. So the
// end of the session, or the deletion of the node, ends it too. A place has one keptPlace, which is active
// each time when the place is kept.
//
// Invariants:
//   - A keptPlace is active while it is in the list. It is the kept of its local queue then. All of that
//     changes under the mu of the local queue.
//   - An active one has its place, except between a loss and Vacate, which ends its time:
//     then Grant refuses the place, and a new one replaces it.
//   - While the list is not empty, endOld is running or about to start, or the pool is closed.
type keptPlace struct {
	queue *Queue
	place *place.Place
	trace string // guarded by the queue's mu; the traceparent of the acquisition that held the place last

	active         bool       // set under the queue's mu and Queues.mu, so either of them guards it
	since          time.Time  // guarded by Queues.mu; since when it has been active
	previous, next *keptPlace // guarded by Queues.mu; neighbours in the list
}

// keptPlaces are the active ones of a client.
type keptPlaces struct {
	ends      keptPlace    // guarded by Queues.mu; the ends of the list: next has been active for the longest time
	count     atomic.Int32 // how many there are, one for each kept name; changed under Queues.mu
	endingOld atomic.Bool  // endOld runs, or is about to
}

// init empties the list.
func (k *keptPlaces) init() { k.ends.previous, k.ends.next = &k.ends, &k.ends }

// keeps reports whether the client keeps the name's place. Queue.mu or Queues.mu is held.
func (q *Queue) keeps() bool { return q.kept != nil && q.kept.active }

// keep adds a kept place to the list. It returns false if the client acquires nothing more.
func (qs *Queues) keep(s *keptPlace) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.closing.Err() != nil {
		return false
	}
	s.since = time.Now()
	s.previous, s.next = qs.kept.ends.previous, &qs.kept.ends
	s.previous.next, s.next.previous = s, s
	qs.kept.count.Add(1)
	s.queue.kept, s.active = s, true
	return true
}

// unkeep takes a kept place out of the list. Its local queue is removed if it is not used.
func (qs *Queues) unkeep(s *keptPlace) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	s.previous.next, s.next.previous = s.next, s.previous
	s.previous, s.next = nil, nil
	qs.kept.count.Add(-1)
	s.active = false
	qs.removeLocked(s.queue)
}

// settle starts endOld, and ends kept places while there are more than keep_max. It is called
// without a mutex. If the pool is closed, its sessions end, and the kept places with them.
func (qs *Queues) settle() {
	if qs.kept.endingOld.CompareAndSwap(false, true) {
		qs.pool.Spawn(qs.endOld)
	}
	for int(qs.kept.count.Load()) > qs.cfg.KeepMax {
		if s, _ := qs.oldest(); s != nil {
			s.end(true)
		}
	}
}

// makeRoom ends the place that was kept for the longest time, and waits until its node is gone. It returns
// false if the client keeps none, or if ctx ends the wait.
func (qs *Queues) makeRoom(ctx context.Context) bool {
	s, _ := qs.oldest()
	if s == nil {
		return false
	}
	s.end(true)
	return s.place.AwaitGone(ctx) == nil
}

// endOld ends kept places when they have been kept for the time keep. It returns when there are
// none.
func (qs *Queues) endOld() {
	for {
		switch s, stays := qs.oldest(); {
		case s == nil:
			qs.kept.endingOld.Store(false)
			if qs.kept.count.Load() == 0 || !qs.kept.endingOld.CompareAndSwap(false, true) {
				return // else a place is kept by now, and settle may have found endingOld set
			}
		case stays <= 0:
			s.end(true)
		case !session.Sleep(qs.pool.Ctx, stays, nil):
			return
		}
	}
}

// oldest returns the place that has been kept for the longest time, and how long it stays so;
// nil if there is none.
func (qs *Queues) oldest() (s *keptPlace, stays time.Duration) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if s = qs.kept.ends.next; s == &qs.kept.ends {
		return nil, 0
	}
	return s, time.Until(s.since.Add(qs.cfg.Keep))
}

// Revoke implements place.Revocable: no caller uses the place, so it leaves the queue.
func (s *keptPlace) Revoke(string) { s.end(true) }

// Vacate implements session.Dependent.
func (s *keptPlace) Vacate() { s.end(false) }

// The loss of a kept place is not reported, since no caller has a Lock of it. MarkLost, Finish,
// Report, Review, Name, Since and Candidacy implement session.Dependent.

func (s *keptPlace) MarkLost() bool          { return true }
func (s *keptPlace) Finish(error, time.Time) {}
func (s *keptPlace) Report()                 {}
func (s *keptPlace) Review()                 {}
func (s *keptPlace) Name() string            { return "" }
func (s *keptPlace) Since() time.Time        { return time.Time{} }
func (s *keptPlace) Candidacy() bool         { return false }

// end is endLocked for callers that do not hold mu. It does nothing if the place is not kept.
func (s *keptPlace) end(remove bool) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if q := s.queue; q.keeps() && q.kept == s {
		s.endLocked(remove)
	}
}

// endLocked ends the time of a kept place. The place is spent then. With remove the place leaves
// ZooKeeper's queue: the delete is sent before the local queue can be removed, so a later
// acquisition sends its create behind it.
func (s *keptPlace) endLocked(remove bool) {
	s.place.EndHold(s)
	if remove {
		s.place.Remove()
	}
	s.queue.queues.unkeep(s)
}

// keepLocked keeps the place of a hold that is over, if no goroutine of this process wants
// the name. It returns false if the place has to leave ZooKeeper's queue. The caller calls
// settle when mu is not held any longer.
func (q *Queue) keepLocked(h *Hold) bool {
	s := q.kept
	if q.queues.cfg.Keep == 0 || q.waiters.Len() > 0 || q.leader != nil || q.grants != nil || q.holds > 0 || q.separateWriters > 0 {
		return false
	}
	if s == nil || s.place != h.place {
		s = &keptPlace{queue: q, place: h.place}
	}
	if !h.place.Keep(s, q) {
		return false
	}
	if !q.queues.keep(s) {
		h.place.EndHold(s)
		return false
	}
	s.trace = h.Origin().Trace
	return true
}

// makeWay adds n to the writers that acquire with a separate place, for each name that a request
// under way wants to write. While there are any, no reader joins a hold on that name, and its place
// is not kept. If n is positive, the places that this client keeps for the request's names leave
// ZooKeeper's queue: the request would wait for them, or conflict with them. The deletes are sent
// before its create, which does not wait for them.
func (qs *Queues) makeWay(r *Request, n int32) {
	for _, w := range r.Wants {
		qs.mu.Lock()
		q := qs.byPath[w.Path]
		qs.mu.Unlock()
		q.mu.Lock()
		if w.Kind.Mode.Excludes(queue.Shared) {
			q.separateWriters += n
		}
		if n > 0 && q.keeps() {
			q.kept.endLocked(true)
		}
		q.mu.Unlock()
	}
}
