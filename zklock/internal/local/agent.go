package local

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// An agent leads a local queue when the leader has left it, and its place stays: the place waits in
// ZooKeeper's queue, or its nodes are being created. The agent goes on with that on a goroutine of its own,
// so the end of one caller's patience costs the others nothing. The place goes to a goroutine that waits at
// the moment of the grant.
//
// An agent is the leader, with a request of its own: a copy of that of the first that waits. It ends with its
// first outcome; the next leader begins again.
//
// Invariants:
//   - While an agent leads, a goroutine waits that the place could be granted to; or the write that creates
//     its nodes is under way, and what comes meanwhile gets them. Otherwise the place leaves ZooKeeper's
//     queue, and a write that was not sent is not sent any more.
//   - An agent uses its name, as an acquisition does, so the local queue is not forgotten meanwhile.
type agent struct {
	ticket
	queue   *Queue
	request Request
	cancel  context.CancelFunc // ends its attempt

	creates *session.Write // guarded by the queue's mu; what creates the nodes of its place; nil: they exist
	ahead   Ahead          // guarded by the queue's mu; what its place waits for; zero: it is not known to wait

	// Used by the agent's goroutine only.
	chosen *ticket // what its place goes to next
	bound  *ticket // what its place has gone to; nil: it has not had its turn
}

// delegateLocked has an agent lead with a place that a leader with the request of has left. It returns false
// if the place is of no use to an agent: it was held before, its session is over, or nothing waits for it.
func (q *Queue) delegateLocked(left *place.Place, of *Request) bool {
	creates, next := left.Opening(), q.nextLocked(of.Mode)
	switch {
	case left.Desk.IsOver(), creates == nil && !left.Granted.IsZero(), next == nil && (creates == nil || !creates.Sent()):
		return false
	}
	a := &agent{queue: q, creates: creates, request: Request{Request: of.Request, Name: of.Name}}
	if next != nil {
		a.request.Request = next.r.Request
	}
	r := &a.request
	if creates != nil {
		r.Mode = of.Mode // what its node is for
	}
	r.Try, r.NoSessionSince = false, time.Time{}
	r.ctx, a.cancel = context.WithCancel(context.WithoutCancel(r.Ctx))
	a.r, a.since, a.desk, a.agent = r, time.Now(), left.Desk, a
	if !left.Desk.Spawn(func() { a.run(left) }) {
		a.cancel()
		return false
	}
	q.queues.use(q)
	q.leader, q.lead = &a.ticket, waitingPlace{}
	return true
}

// run goes on with a place until it is granted, or until the attempt has failed.
func (a *agent) run(start *place.Place) {
	q := a.queue
	defer q.queues.endUse(q)
	patient, cancel := q.queues.pool.Patient(a.request.ctx, time.Now())
	left, err := place.Attempt{Session: start.Session(), Request: &a.request.Request, By: a}.Take(a.request.ctx, patient, cancel, start)
	a.cancel()
	if errors.Is(err, errs.ErrUnavailable) {
		q.noSessionSince = a.request.NoSessionSince
	}
	switch tk := a.bound; {
	case tk == nil:
		q.led(nil, left)
	case err != nil: // the hold was lost before it was live; so tk leads, without a place
		q.mu.Lock()
		q.leader, q.lead = tk, waitingPlace{}
		q.mu.Unlock()
		tk.answer(false, left)
	default:
		h := tk.r.got
		q.led(h, nil)
		if h.place.Handover().Mode != h.Mode() {
			q.shareWhenDue(h.place) // a reader has got a writer's place
		}
		tk.answer(true, nil)
	}
}

// reviewLocked ends the agent's attempt if nothing waits that its place could be granted to; so it does if the
// first in the queue is a reader, and the place a writer's: the next agent makes it a reader's, which waits
// for fewer contenders.
func (a *agent) reviewLocked() {
	next := a.queue.nextLocked(a.request.Mode)
	switch {
	case a.creates != nil && a.creates.Sent():
	case next == nil, a.creates == nil && next.r.Mode != a.request.Mode && next.r.Mode.Joins():
		a.cancel()
	}
}

// Waits implements place.Requester.
func (a *agent) Waits(own *place.Place, dir string, position int, ahead place.Entry) {
	met := Ahead{Position: position, Entry: ahead, Own: own, Path: dir}
	a.queue.leaderMeets(true, waitingPlace{own, met.Nearest()})
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	a.ahead, a.creates = met, nil
	a.reviewLocked()
}

// Stays implements place.Requester.
func (a *agent) Stays() bool {
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	return a.queue.nextLocked(a.request.Mode) != nil
}

// NewHold implements place.Requester: it chooses what the place goes to. If nothing waits for it any more,
// the attempt ends.
func (a *agent) NewHold(p *place.Place) place.Holder {
	a.queue.mu.Lock()
	a.creates = nil
	a.chosen = a.queue.nextLocked(a.request.Mode)
	a.queue.mu.Unlock()
	if a.chosen == nil {
		a.cancel()
		return nil
	}
	return (*requester)(a.chosen.r).NewHold(p)
}

// Begin implements place.Requester. It returns false if the goroutine that was chosen has left meanwhile,
// too: Grant is repeated then, and chooses again.
func (a *agent) Begin(h place.Holder, turn uint32) bool {
	q := a.queue
	q.mu.Lock()
	stays := a.chosen.at != nil
	if stays {
		q.unqueueLocked(a.chosen)
		a.bound = a.chosen
	}
	q.mu.Unlock()
	return stays && h.(*Hold).begin(a.bound.r, turn)
}
