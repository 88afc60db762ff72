package local

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// gate is in front of ZooKeeper's queues for the requests of a client with separate places: permits, several
// names at once, and those without hand-over. The gate lets through as many requests as can hold at a time: one for
// each name that is wanted alone, and as many as there are permits. The rest waits in the process, in the order of
// the calls. Where callers ask for different numbers of permits, the limit is as in ZooKeeper's queues, the least number of
// the one that waits, what was let through, and what waits ahead: see isFull. A contender that waited in ZooKeeper's queue
// behind another of its own client would get the lock no earlier, and if its caller gave up, its node would have to be
// deleted again, in front of the next.
//
// Readers hold together, so they take no room. But a reader waits while something that excludes it was let through:
// behind that, in ZooKeeper's queue, it would wait, too. And while callers give up, few readers are under way at a
// time, since the nodes of more would come too late; readers that wait are let through before writers that wait, up to
// maxBatch of them.
//
// A hold's place is replaced, in one transaction, by that of the next that wants the same: at the tail of
// ZooKeeper's queues. So a process with many callers has its turn as often as one with a single caller.
//
// Invariants:
//   - The gate lets a request through for all of its names at once, when each has room. So a request at the gate waits
//     for those that were let through on a name without room, and for nothing else: see points.
//   - A request that was let through has an admission while it is under way, or while an agent goes on with it. Its hold
//     keeps the admission until the hold is over, unless it is a reader's. What removes an admission lets the next through.
//   - The gate notes a reader's admission only where a request has waited, until the reader has a hold. So readers that
//     hold keep nothing out. A writer waits at the gate for readers only while their requests are under way, and never
//     while they wait for others: see prefersReaders. A reader waits for readers only while callers give up.
//   - The gate lets the first request that waits for a name through first, unless that request waits for another name,
//     too, or its caller is likely to leave during its work: see patience. A request that was passed over maxPassed
//     times goes through although there is no room, and waits in ZooKeeper's queues. So no request starves.
//   - A request for more permits does not pass one for fewer that waits: where one has no room, none behind it has. Only an agent's
//     place, which was in ZooKeeper's queue before, goes to one behind: it wants the same.
type gate struct {
	client gateClient
	long   time.Duration // a candidate that waits for so long has a node
	mu     mutex.Mutex[mutex.Outer]
	byPath map[string]*separate // guarded by mu
	sweep  int                  // guarded by mu; idle names are forgotten when byPath is as large
	yielding
}

// gateClient is the client as its gate sees it.
type gateClient interface {
	users

	// contextOf returns the context of an acquisition.
	contextOf(r *Request) context.Context

	// unavailable returns the error of a request that waits for a session; nil if there is one that has a
	// connection.
	unavailable(ctx context.Context, path string) error
}

// taker takes a place for a request that was let through; Queue implements it.
type taker interface {
	take(r *Request, start *place.Place) (left *place.Place, err error)
}

// init sets up the gate of a client. A candidate that waits for as long as long has a node.
func (g *gate) init(client gateClient, long time.Duration, jitter func(time.Duration) time.Duration) {
	g.client, g.long, g.byPath = client, long, make(map[string]*separate)
	g.yielding.jitter, g.yielding.resume = jitter, g.resume
}

// maxPassed is how often a request for several names may be passed over.
const maxPassed = 16

// applies reports whether a request waits at the gate. A try does not wait. A candidate that waits
// for long has a node that others see, unless candidates give up at present.
func (g *gate) applies(r *Request) bool {
	if r.Try || !r.Candidacy {
		return !r.Try
	}
	long := g.long
	deadline, bounded := r.Ctx.Deadline()
	return bounded && time.Until(deadline) < long || r.Wait > 0 && r.Wait < long || g.isPressed(r)
}

// isPressed reports whether callers of the first name of a request give up at present.
func (g *gate) isPressed(r *Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], r.Wants)
	c := firstCrowd(names, r.Wants)
	return c != nil && c.patience.pressedLocked(time.Now())
}

// gaveUp notes that the caller of a request that did not wait at the gate has given up.
func (g *gate) gaveUp(r *Request, since time.Time) {
	deadline, _ := r.Ctx.Deadline()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gaveUpLocked(r, since, deadline)
}

// gaveUpLocked notes that a caller has given up that did not wait at the gate, or not at the end.
func (g *gate) gaveUpLocked(r *Request, since, deadline time.Time) {
	s := firstOf(g.namesFor(new(few)[:0], r.Wants, true), r.Wants)
	if s.crowd == nil {
		s.crowd = new(crowd)
	}
	s.crowd.patience.leftLocked(r, since, deadline)
}

// minSweep is how many names the gate remembers before it looks for idle ones.
const minSweep = 64

// names appends what the gate knows of each name of a request: nil for a name that is read, and of which it knows
// nothing, unless the request waits. The mutex is held.
func (g *gate) names(to []*separate, wants []place.Want) []*separate {
	return g.namesFor(to, wants, false)
}

// namesFor is names, also for a request that begins to wait.
func (g *gate) namesFor(to []*separate, wants []place.Want, waits bool) []*separate {
	for i := range wants {
		s := g.byPath[wants[i].Path]
		if s == nil && (waits || counts(&wants[i])) {
			if len(g.byPath) >= g.sweep {
				now := time.Now()
				maps.DeleteFunc(g.byPath, func(_ string, s *separate) bool { return s.isIdle(now) && !slices.Contains(to, s) })
				g.sweep = max(minSweep, 2*len(g.byPath))
			}
			s = new(separate)
			g.byPath[wants[i].Path] = s
		}
		to = append(to, s)
	}
	return to
}

// few is room for the names of most requests.
type few [4]*separate

// acquire acquires a hold for a request that waits at the gate.
func (g *gate) acquire(by taker, r *Request) (err error) {
	var start *place.Place
	r.admitted = false
	tk, err := g.enter(r, r.latest())
	if err != nil {
		return err
	}
	if tk != nil {
		if err := g.await(tk); err != nil || tk.granted {
			return err
		}
		start = tk.start
	}
	var left *place.Place
	since := time.Now()
	defer func() { g.took(r, since, left, err) }() // also if a hook panics
	left, err = by.take(r, start)
	return err
}

// took ends an attempt of a request, which has begun at since. left is its place if another goroutine can go on
// with it, which it may if the request was let through.
func (g *gate) took(r *Request, since time.Time, left *place.Place, err error) {
	deadline, _ := r.Ctx.Deadline()
	gaveUp := err != nil && g.client.contextOf(r).Err() != nil
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], r.Wants)
	if gaveUp {
		g.gaveUpLocked(r, since, deadline)
	}
	if c := firstCrowd(names, r.Wants); c != nil {
		if c.noSessionSince = r.NoSessionSince; err == nil && r.admitted {
			c.patience.ledLocked(r, since)
		}
	}
	if r.admitted {
		g.endLocked(names, r, r.got, left)
	} else if left != nil {
		left.Remove()
	}
}

// endLocked ends an attempt of what was let through: got holds from now on; or else an agent goes on with the
// place left, if that is of use, or others are let through.
func (g *gate) endLocked(names []*separate, r *Request, got *Hold, left *place.Place) {
	behind := slices.ContainsFunc(admissionsOf(names, r), func(e *admission) bool { return e.at != nil })
	if got != nil {
		g.askedLocked(r, true, behind)
		read := false
		for i, s := range names {
			read = s != nil && !counts(&r.Wants[i]) && s.leaveLocked(&r.Wants[i], func(e *admission) bool { return e.r == r }) || read
		}
		for _, e := range admissionsOf(names, r) {
			e.r, e.at = nil, nil
		}
		if read {
			g.serveLocked(names)
		}
		return
	}
	if left != nil {
		q := firstOf(names, r.Wants)
		if q.crowd != nil {
			if a := newAgent(g.client, gateCrew{g, q}, &q.crowd.patience, left, r); a != nil {
				for _, e := range admissionsOf(names, r) {
					e.r, e.hold, e.at = &a.request, nil, nil
				}
				q.crowd.agents = append(q.crowd.agents, a)
				return
			}
		}
		left.Remove() // before the creates of the next
	}
	g.askedLocked(r, false, behind)
	g.leaveLocked(names, r.Wants, func(e *admission) bool { return e.r == r })
}

// enter lets a request through, or returns the ticket with which it waits. A request whose kind conflicts with
// what was let through goes on without being let through: the ensemble refuses it.
func (g *gate) enter(r *Request, latest time.Time) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], r.Wants)
	if s := firstOf(names, r.Wants); s != nil && s.readers() > 0 && s.crowd.line.Len() > 0 && !s.pressed() {
		g.serveLocked(names) // callers have ceased to give up
	}
	passes := len(r.Wants) == 1 || !g.yieldsLocked(time.Now())
	for i, s := range names {
		if s == nil {
			continue
		}
		if len(s.through) > 0 && (s.permits > 0) != (r.Wants[i].Kind.Permits > 0) {
			return nil, nil
		}
		s.asksFor(&r.Wants[i])
		passes = passes && s.hasRoom(&r.Wants[i], nil, s.limit(&r.Wants[i], nil))
	}
	if passes {
		passesLocked(names, r.Wants, nil)
		enterLocked(names, r)
		g.asksLocked(r)
		return nil, nil
	}
	if c := firstCrowd(names, r.Wants); c != nil {
		if err := c.patience.busyLocked(latest, c.takers); err != nil {
			return nil, err
		}
	}
	names, tk := g.namesFor(names[:0], r.Wants, true), newTicket(r)
	first := firstOf(names, r.Wants)
	for _, s := range names {
		if s.crowd == nil {
			s.crowd = new(crowd)
		}
		if at := s.crowd.line.PushBack(tk); s == first {
			tk.at, tk.patience = at, &s.crowd.patience
		} else {
			tk.also = append(tk.also, at)
		}
	}
	countLocked(names, tk, 1)
	for _, a := range first.crowd.agents {
		session.Poke(a.comes)
	}
	return tk, nil
}

// firstOf returns what the gate knows of the name that the callers of a request are counted with: the first that
// takes room, or else the first. It is nil only if that is read, and nothing is known of it.
func firstOf(names []*separate, wants []place.Want) *separate {
	return names[max(0, slices.IndexFunc(wants, func(w place.Want) bool { return counts(&w) }))]
}

// firstCrowd returns what waits for the first name; nil if nothing has waited.
func firstCrowd(names []*separate, wants []place.Want) *crowd {
	if s := firstOf(names, wants); s != nil {
		return s.crowd
	}
	return nil
}

// worked notes since when the last caller of a hold has had it.
func (g *gate) worked(h *Hold, since time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], h.wants)
	if c := firstCrowd(names, h.wants); c != nil && c.patience.tested.Load() {
		c.patience.workedLocked(since)
	}
}
