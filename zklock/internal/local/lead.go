package local

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// A local queue is the crew of the agent that leads it.

// Lock and Unlock implement crew.
func (q *Queue) Lock()   { q.mu.Lock() }
func (q *Queue) Unlock() { q.mu.Unlock() }

// nextFor implements crew.
func (q *Queue) nextFor(of *Request) *ticket { return q.nextLocked(of.Mode, false) }

// holdsLocked implements crew.
func (q *Queue) holdsLocked(*agent, *Hold) (admitted bool) { return false }

// agentMeetsLocked implements crew.
func (q *Queue) agentMeetsLocked(_ *agent, at waitingPlace) { q.leaderMeetsLocked(true, at) }

// agentEnds implements crew.
func (q *Queue) agentEnds(a *agent, tk *ticket, got *Hold, left *place.Place) {
	if since := a.request.NoSessionSince; !since.IsZero() {
		q.noSessionSince = since
	}
	if tk != nil && got == nil { // the hold was lost before it was live; so tk leads
		q.mu.Lock()
		defer q.mu.Unlock()
		q.leader, q.agent, q.lead = tk, nil, waitingPlace{}
		return
	}
	q.led(got, left)
	if got != nil && got.place.Handover().Mode != got.Mode() {
		q.shareWhenDue(got.place) // a reader has got a writer's place
	}
}

// worked notes for how long a hold's last caller has had it. It costs a load while no caller gives up.
func (q *Queue) worked(h *Hold, since time.Time) {
	switch {
	case h.admitted:
		q.queues.gate.worked(h, since)
	case q.patience.tested.Load():
		q.mu.Lock()
		defer q.mu.Unlock()
		q.patience.workedLocked(since)
	}
}

// A request, and its hold, come to the gate through their local queue.

// holdsAtGate implements home.
func (q *Queue) holdsAtGate(r *Request, h *Hold) { q.queues.gate.holds(r, h) }

// passGate implements home.
func (q *Queue) passGate(h *Hold) (taken bool) { return q.queues.gate.pass(h) }

// leavesGate implements home.
func (q *Queue) leavesGate(h *Hold) { q.queues.gate.leaves(h) }

// admittedMeets implements home.
func (q *Queue) admittedMeets(r *Request, at waitingPlace) { q.queues.gate.meets(r, at) }
