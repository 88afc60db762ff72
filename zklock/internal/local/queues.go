package local

import (
	"context"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Queues has a local queue for each name that a client holds, waits for or keeps, and what all
// of them need of the client.
type Queues struct {
	cfg  *QueueSettings
	pool *session.Pool[*place.WatchedDesk]

	closing context.Context         // ends, with cause ErrClosed, when the client acquires nothing more
	close   context.CancelCauseFunc // ends closing

	mu       mutex.Mutex[mutex.Inner]
	byPath   map[string]*Queue     // guarded by mu; no entry if the name is neither used nor kept
	used     int                   // guarded by mu; how many of them are used, and not only kept
	underway map[*Request]struct{} // guarded by mu; acquisitions under way
	idle     chan struct{}         // guarded by mu; if not nil, closed when byPath is empty; made after closing has ended

	kept keptPlaces
	gate gate
}

// QueueSettings are the settings of local queues. They are checked.
type QueueSettings struct {
	Place place.NodeSettings

	HandoverLimit, KeepMax, MaxWaiters, MaxNames int           // 0: no hand-over, and readers do not share places; no limit
	HandoverTime, Keep                           time.Duration // 0: no hand-over; no place is kept between two uses
}

// NewQueues returns the local queues of a client, of which there are none yet.
func NewQueues(cfg *QueueSettings, pool *session.Pool[*place.WatchedDesk]) *Queues {
	qs := &Queues{cfg: cfg, pool: pool, byPath: make(map[string]*Queue), underway: make(map[*Request]struct{})}
	qs.kept.init()
	qs.gate.init(qs, cfg.Place.SessionTimeout, cfg.Place.Jitter)
	qs.closing, qs.close = context.WithCancelCause(context.Background())
	return qs
}

// Closing returns a context that ends, with cause ErrClosed, when the client acquires nothing more.
func (qs *Queues) Closing() context.Context { return qs.closing }

// Refuse makes all acquisitions fail with ErrClosed: those under way and later ones. No place is
// kept from then on.
func (qs *Queues) Refuse() {
	qs.close(errs.ErrClosed)
	qs.mu.Lock()
	var waits []context.CancelCauseFunc
	for r := range qs.underway {
		if r.cancel != nil { // else it has its lock in a moment, or context finds that the client refuses it
			waits = append(waits, r.cancel)
		}
	}
	qs.mu.Unlock()
	for _, cancel := range waits {
		cancel(errs.ErrClosed)
	}
	for s, _ := qs.oldest(); s != nil; s, _ = qs.oldest() {
		s.end(true)
	}
}

// Unused returns a channel that is closed when no name is in use. It is called after Refuse.
func (qs *Queues) Unused() <-chan struct{} {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.idle == nil {
		qs.idle = make(chan struct{})
		qs.notifyIdleLocked()
	}
	return qs.idle
}

// InUse reports whether the client holds, waits for or keeps the name with this path.
func (qs *Queues) InUse(path string) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byPath[path] != nil
}

// Enter counts an acquisition as a user of the local queues of all names that it wants. It returns
// that of the first name, which acquires it. If a limit is reached, or the client is closed or shutting
// down, it returns an error. It makes no request.
func (qs *Queues) Enter(r *Request) (*Queue, error) {
	if limit := qs.cfg.MaxWaiters; limit > 0 && (r.MaxWaiters == 0 || limit < r.MaxWaiters) {
		r.MaxWaiters = limit
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.closing.Err() != nil {
		return nil, errs.ErrClosed // Refuse may have notified those in underway already
	}
	fresh := 0
	for _, w := range r.Wants {
		q := qs.byPath[w.Path]
		switch {
		case q == nil || q.uses == 0:
			fresh++
		case !r.Try && !w.Kind.Mode.Joins() && !q.roomLocked(r):
			return nil, errs.ErrCrowded // it would have to wait behind those that wait already
		}
	}
	if limit := qs.cfg.MaxNames; limit > 0 && fresh > 0 && qs.used+fresh > limit {
		return nil, fmt.Errorf("%w: max_names=%d names are in use", errs.ErrTooManyWaiters, limit)
	}
	qs.underway[r] = struct{}{}
	var first *Queue
	for _, w := range r.Wants {
		q := qs.byPath[w.Path]
		if q == nil {
			q = &Queue{queues: qs, path: w.Path}
			q.granted.L = &q.mu
			qs.byPath[w.Path] = q
		}
		if qs.useLocked(q); first == nil {
			first = q
		}
	}
	r.home = first
	return first, nil
}

// roomLocked reports whether the limit of a request allows one more waiter for a name. Queues.mu is held.
func (q *Queue) roomLocked(r *Request) bool {
	return r.MaxWaiters == 0 || int(q.waiting) < r.MaxWaiters
}

// contextOf returns the context of an acquisition that does not get its lock at once. It is made at the
// first call: an acquisition from a goroutine of this process, or of a kept place, needs none. It
// ends with the caller's, when the longest time to wait has passed, when the limit of waiters is
// reached, or when the client is closed.
func (qs *Queues) contextOf(r *Request) context.Context {
	if r.ctx != nil {
		return r.ctx
	}
	ctx, cancel := context.WithCancelCause(r.Ctx)
	end := cancel
	if r.Wait > 0 && !r.Try {
		timer := time.AfterFunc(r.Wait, func() { cancel(errs.ErrWaitOver) })
		end = func(cause error) { timer.Stop(); cancel(cause) }
	}
	qs.mu.Lock()
	r.ctx, r.cancel = ctx, end
	refused := qs.closing.Err() != nil
	qs.mu.Unlock()
	if refused {
		end(errs.ErrClosed)
	}
	return ctx
}

// Cancel ends an acquisition that waits. cause is a part of its error.
func (qs *Queues) Cancel(r *Request, cause error) {
	qs.mu.Lock()
	cancel := r.cancel
	if _, underway := qs.underway[r]; !underway {
		cancel = nil
	}
	qs.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// mustWait counts an acquisition as one that has to wait for other contenders. It returns false,
// and counts nothing, if the limit of waiters is reached.
//
// The limit is checked here because only now is it known that the acquisition has to
// wait: a reader that joins readers, one that gets a free permit, and a try do not. An
// acquisition that came earlier, but had to ask the ensemble first, does not displace one
// that already waits.
func (q *Queue) mustWait(r *Request) bool {
	qs := q.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !r.served { // otherwise another goroutine has just granted it the lock
		for _, w := range r.Wants {
			if !qs.byPath[w.Path].roomLocked(r) {
				return false
			}
		}
		qs.blockLocked(r, true)
	}
	r.waitFrom = time.Now()
	return true
}

// blockLocked begins or ends the count of an acquisition as one that waits for other contenders.
func (qs *Queues) blockLocked(r *Request, blocked bool) {
	if r.blocked == blocked {
		return
	}
	r.blocked = blocked
	for _, w := range r.Wants {
		if q := qs.byPath[w.Path]; blocked {
			q.waiting++
		} else {
			q.waiting--
		}
	}
}

// Leave ends what Enter began, and the context of the acquisition.
func (qs *Queues) Leave(r *Request) {
	if r.cancel != nil {
		r.cancel(nil)
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	delete(qs.underway, r)
	qs.blockLocked(r, false)
	for _, w := range r.Wants {
		qs.endUseLocked(qs.byPath[w.Path])
	}
}

// served no longer counts an acquisition as waiting, because it has got its lock: it may take a
// while until its goroutine runs. uses are the names that a new hold uses from now on.
func (q *Queue) served(r *Request, uses []place.Want) {
	qs := q.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, w := range uses {
		qs.useLocked(qs.byPath[w.Path])
	}
	r.served = true
	qs.blockLocked(r, false)
}

// waitAgain is called when an acquisition's lock was lost before Acquire returned. It
// counts the acquisition as waiting again, if it had to wait before.
func (q *Queue) waitAgain(r *Request) {
	qs := q.queues
	qs.mu.Lock()
	defer qs.mu.Unlock()
	r.served = false
	qs.blockLocked(r, !r.waitFrom.IsZero()) // waits is the requester's own, and this may be another goroutine
}

// vacated ends the use of its names by a hold that is over.
func (q *Queue) vacated(names []place.Want) { q.queues.endUse(names) }

// useLocked begins a use of a name: by an acquisition under way or by a hold.
func (qs *Queues) useLocked(q *Queue) {
	if q.uses++; q.uses == 1 {
		qs.used++
	}
}

// use and endUse begin and end the use of names by an agent.
func (qs *Queues) use(wants []place.Want) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, w := range wants {
		qs.useLocked(qs.byPath[w.Path])
	}
}

func (qs *Queues) endUse(wants []place.Want) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, w := range wants {
		qs.endUseLocked(qs.byPath[w.Path])
	}
}

// patient implements users.
func (qs *Queues) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return qs.pool.Patient(ctx, time.Now())
}

// endUseLocked ends one use of a name.
func (qs *Queues) endUseLocked(q *Queue) {
	if q.uses--; q.uses == 0 {
		qs.used--
		qs.removeLocked(q)
	}
}

// removeLocked removes a local queue that is neither used nor kept.
func (qs *Queues) removeLocked(q *Queue) {
	if q.uses == 0 && !q.keeps() {
		delete(qs.byPath, q.path)
		qs.notifyIdleLocked()
	}
}

// notifyIdleLocked notifies Shutdown if no local queue is left. None is added after that.
func (qs *Queues) notifyIdleLocked() {
	if qs.idle != nil && len(qs.byPath) == 0 {
		close(qs.idle)
	}
}

// hasOthers reports whether this client has, or may get, more than one place for a name: more
// than one goroutine uses the name, apart from those that share a hold, or one does while the
// client keeps a place.
func (qs *Queues) hasOthers(q *Queue) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return q.uses > 1 || q.uses == 1 && q.keeps()
}

// Tally has figures of the local queues at a moment.
type Tally struct {
	Kept        int           // places that are kept
	Underway    int           // acquisitions under way
	Waiting     int           // those of them that wait for other contenders
	Candidates  int           // those of them that are meant to wait for long
	LongestWait time.Duration // the longest wait of the others
}

// Tally counts the acquisitions that are under way.
func (qs *Queues) Tally() Tally {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	n := Tally{Kept: int(qs.kept.count.Load()), Underway: len(qs.underway)}
	for r := range qs.underway {
		switch {
		case !r.blocked:
			continue
		case r.Candidacy:
			n.Candidates++
		default:
			n.LongestWait = max(n.LongestWait, time.Since(r.waitFrom))
		}
		n.Waiting++
	}
	return n
}

// Waiting returns how many acquisitions wait for other contenders, by name, without those that are
// meant to wait for long.
func (qs *Queues) Waiting() map[string]int {
	waiting := make(map[string]int)
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for r := range qs.underway {
		for _, w := range r.Wants {
			if r.blocked && !r.Candidacy {
				waiting[w.Name]++
			}
		}
	}
	return waiting
}
