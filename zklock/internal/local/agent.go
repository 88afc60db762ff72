package local

import (
	"context"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// agent goes on with a place whose requester has left: the place waits in ZooKeeper's queue, or its nodes are
// being created. An agent has a goroutine of its own, so the end of one caller's patience costs the others
// nothing. The place goes to a goroutine that waits at the moment of the grant.
//
// An agent has a request of its own, a copy of that of the first goroutine that waits. The agent ends with its first
// outcome; the next requester begins again.
//
// Invariants:
//   - While an agent is at work, a goroutine waits that the place could be granted to; or the write that
//     creates its nodes is under way, and a goroutine that comes meanwhile gets them. Otherwise the place leaves
//     ZooKeeper's queue, and the session does not send a write that it has not sent.
//   - A place of several names has some of them while it waits for another, and the wait of an agent is in no register: see
//     package deadlock. So an agent gives such a place up after severalFor. The next requester's wait is registered.
//   - An agent uses its name, as an acquisition does, so the local queue is not forgotten meanwhile.
type agent struct {
	ticket
	crew    crew
	client  users
	request Request
	cancel  context.CancelFunc // ends its attempt

	comes  chan struct{} // cap 1: something that may want its place has come
	review *time.Timer   // guarded by the crew; see reviewLocked; nil: none is due

	creates *session.Write // guarded by the crew; what creates the nodes of its place; nil: they exist
	ahead   Ahead          // guarded by the crew; what its place waits for; zero: it is not known to wait

	chosen *ticket // guarded by the crew for other goroutines; what its place goes to next; nil: it is not its turn
	bound  *ticket // what its place has gone to; nil: it has not had its turn; the agent's goroutine uses it only
}

// crew is those that wait for what an agent is about to get. nextFor, and methods that end in Locked, are called
// with its mutex held.
type crew interface {
	sync.Locker

	// nextFor returns the ticket that the place of a request goes to next; nil if there is none.
	nextFor(of *Request) *ticket

	// unqueueLocked takes a ticket out of the queue.
	unqueueLocked(tk *ticket)

	// holdsLocked notes the newest hold that was made for an agent's place. It reports whether the place was let
	// through the gate.
	holdsLocked(a *agent, h *Hold) (admitted bool)

	// agentMeetsLocked is called when the agent's place begins to wait for a contender.
	agentMeetsLocked(a *agent, at waitingPlace)

	// agentEnds is called when the agent has granted its place to a ticket, or has failed, if got is nil.
	// tk is what it has tried to grant it to; nil: nothing. left, if not nil, is the place.
	agentEnds(a *agent, tk *ticket, got *Hold, left *place.Place)
}

// users is the client as an agent sees it.
type users interface {
	// use and endUse begin and end the use of names.
	use(wants []place.Want)
	endUse(wants []place.Want)

	// patient returns a context that ends connect_timeout from now.
	patient(ctx context.Context) (context.Context, context.CancelFunc)

	// Closing returns a context that ends when the client acquires nothing more.
	Closing() context.Context
}

// newAgent returns an agent for a place that a request has left, and sets it to work. It returns nil if the
// place is of no use to one: it was held before, its session is over, or nothing waits for it. The crew's
// mutex is held.
func newAgent(client users, c crew, p *patience, left *place.Place, of *Request) *agent {
	creates, next := left.Opening(), c.nextFor(of)
	switch {
	case left.Desk.Session.IsOver(), creates == nil && !left.Granted.IsZero(), next == nil && (creates == nil || !creates.Sent()): // TestCreateOfACallerThatLeavesGoesToTheNext
		return nil
	}
	a := &agent{client: client, crew: c, comes: make(chan struct{}, 1), creates: creates, request: Request{Claim: of.Claim, Name: of.Name, apart: of.apart}}
	r := &a.request
	switch {
	case next == nil:
	case creates == nil:
		r.Claim = next.r.Claim
	default: // what its nodes are for stays, also if they have to be created once more
		r.Ctx, r.Origin = next.r.Ctx, next.r.Origin
	}
	r.Try, r.Keep, r.NoSessionSince = false, false, time.Time{}
	r.ctx, a.cancel = context.WithCancel(context.WithoutCancel(r.Ctx))
	a.r, a.since, a.desk, a.patience = r, time.Now(), left.Desk, p
	if !left.Desk.Session.Spawn(func() { a.run(left) }) {
		a.cancel()
		return nil
	}
	client.use(r.Wants)
	return a
}

// run goes on with a place until it is granted, or until the attempt has failed.
func (a *agent) run(start *place.Place) {
	r := &a.request
	defer a.client.endUse(r.Wants)
	if len(r.Wants) > 1 {
		defer time.AfterFunc(severalFor, a.cancel).Stop() // TestCircleThroughAnAgentEnds
	}
	patient, cancel := a.client.patient(r.ctx)
	left, err := place.Attempt{Session: start.Session(), Claim: &r.Claim, By: a}.Take(r.ctx, patient, cancel, start)
	a.cancel()
	a.crew.Lock()
	a.chooseLocked(nil)
	if a.review != nil {
		a.review.Stop()
	}
	a.crew.Unlock()
	var got *Hold
	if a.bound != nil && err == nil {
		got = a.bound.r.got
	}
	if left != nil && len(r.Wants) > 1 && time.Since(a.since) >= severalFor { // TestCircleThroughAnAgentEnds
		left.Remove()
		left = nil
	}
	a.crew.agentEnds(a, a.bound, got, left)
	if a.bound != nil {
		a.bound.answer(got != nil, left)
	}
}

// severalFor is how long an agent goes on with a place of several names: about as long as a wait lasts by default until it is
// registered.
const severalFor = time.Second

// breath is for how long an agent whose callers have all left waits for others, if callers give up at present.
// Callers that came at the same moment give up at the same moment, and many of them come again at once.
const breath = time.Millisecond

// reviewLocked is called when a ticket has left that the agent's place could have gone to. A breath later the agent
// looks at what waits: once, however many tickets leave by then. If the client is closed, the attempt ends at once.
func (a *agent) reviewLocked() {
	switch {
	case a.creates != nil && a.creates.Sent(), a.review != nil: // TestThousandsLeaveAtOnce
	case a.client.Closing().Err() != nil:
		a.cancel()
	default:
		a.review = time.AfterFunc(breath, a.reviewNow)
	}
}

// reviewNow ends the agent's attempt if nothing waits that its place could be granted to; and if the next is a reader,
// and the place a writer's: the next agent makes it a reader's, which waits for fewer contenders.
func (a *agent) reviewNow() {
	a.crew.Lock()
	defer a.crew.Unlock()
	a.review = nil
	if a.creates != nil && a.creates.Sent() {
		return
	}
	if next := a.nextLocked(); next == nil || a.creates == nil && next.r.Mode != a.request.Mode && next.r.Mode.Joins() {
		a.cancel()
	}
}

// nextLocked returns the ticket that the agent's place goes to, as it seems; nil if there is none.
func (a *agent) nextLocked() *ticket {
	if a.chosen != nil && a.chosen.at != nil { // TestAgentGoesOnForTheCallerItHasChosen
		return a.chosen
	}
	return a.crew.nextFor(&a.request)
}

// Waits implements place.Requester.
func (a *agent) Waits(own *place.Place, dir string, position int, ahead place.Entry) {
	met := Ahead{Position: position, Entry: ahead, Own: own, Path: dir}
	a.crew.Lock()
	defer a.crew.Unlock()
	a.ahead, a.creates = met, nil
	a.crew.agentMeetsLocked(a, waitingPlace{own, met.Nearest()})
	a.reviewLocked()
}

// Stays implements place.Requester.
func (a *agent) Stays() bool {
	a.crew.Lock()
	defer a.crew.Unlock()
	return a.nextLocked() != nil
}

// NewHold implements place.Requester: it chooses what the place goes to. If nothing waits for it any more,
// the attempt ends.
func (a *agent) NewHold(p *place.Place) place.Holder {
	for until := (time.Time{}); ; {
		now := time.Now()
		a.crew.Lock()
		a.creates = nil
		a.chooseLocked(nil)
		next := a.crew.nextFor(&a.request)
		standby := a.patience.standbyLocked(next, now)
		if until.IsZero() {
			until = now.Add(standby)
		}
		over := standby == 0 || !now.Before(until)
		if over {
			a.chooseLocked(next)
		}
		a.crew.Unlock()
		if a.chosen != nil {
			break
		}
		if over || !session.Sleep(a.request.ctx, until.Sub(now), a.comes) && a.request.ctx.Err() != nil {
			a.cancel()
			return nil
		}
	}
	h := (*claimant)(a.chosen.r).NewHold(p).(*Hold)
	a.crew.Lock()
	defer a.crew.Unlock()
	h.admitted = a.crew.holdsLocked(a, h)
	return h
}

// chooseLocked reserves a ticket, or none, for the agent's place. Its goroutine may still leave. No other place is
// offered to it meanwhile: it can have one lock only.
func (a *agent) chooseLocked(tk *ticket) {
	if a.chosen != nil {
		a.chosen.reserved = false
	}
	if a.chosen = tk; tk != nil {
		tk.reserved = true
	}
}

// Begin implements place.Requester. It returns false if the goroutine that was chosen has left meanwhile,
// too: Grant is repeated then, and chooses again.
func (a *agent) Begin(h place.Holder, turn uint32) bool {
	a.crew.Lock()
	stays := a.chosen.at != nil
	if stays {
		a.crew.unqueueLocked(a.chosen)
		a.bound = a.chosen
	}
	a.crew.Unlock()
	return stays && h.(*Hold).begin(a.bound.r, turn)
}
