package local

import (
	"container/list"
	"context"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// await waits until a ticket is let through, or has a hold. If the request's context ends first, it
// takes the ticket out of the lines.
func (g *gate) await(tk *ticket) error {
	r := tk.r
	ctx := g.client.contextOf(r)
	deadline, _ := r.Ctx.Deadline() // without a mutex: it is the caller's
	g.mu.Lock()
	if tk.at == nil { // what it waited for may be forgotten by now
		g.mu.Unlock()
		<-tk.answered // soon: it was sent, or is about to be
		return nil
	}
	names := g.names(nil, r.Wants)
	c := firstCrowd(names, r.Wants)
	tk.deadline = deadline
	ahead := g.aheadLocked(names, tk)
	g.mu.Unlock()
	leavesIfPanics(func() { r.meets(ahead) }, func() { g.leave(names, tk) })
	select {
	case <-tk.answered:
		// If the one before had no usable session, those behind it had none either.
		g.mu.Lock()
		if since := c.noSessionSince; since.After(tk.since) {
			r.NoSessionSince = since
		} else if !since.IsZero() {
			r.NoSessionSince = tk.since
		}
		g.mu.Unlock()
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		ahead, held := g.aheadLocked(names, tk), firstOf(names, r.Wants).isHeld()
		g.mu.Unlock()
		err := g.waitEnded(ctx, r, held)
		if !ahead.Local {
			r.Caller.Sees(ahead) // what an agent's place waits for
		}
		g.leave(names, tk)
		return err
	}
}

// isHeld reports whether something that was let through holds.
func (s *separate) isHeld() bool {
	return slices.ContainsFunc(s.through, func(e admission) bool { return e.r == nil })
}

// waitEnded returns the error of a wait at the gate that ctx has ended.
func (g *gate) waitEnded(ctx context.Context, r *Request, held bool) error {
	if !held {
		if err := g.client.unavailable(ctx, r.Wants[0].Path); err != nil {
			return err // as what was let through would get it
		}
	}
	return errs.WaitEnded(ctx, errs.ErrNotAcquired)
}

// leave takes a ticket out of the lines. If it was already sent its answer, leave passes on what it got.
func (g *gate) leave(names []*separate, tk *ticket) {
	g.mu.Lock()
	tk.patience.leftLocked(tk.r, tk.since, tk.deadline)
	if tk.at != nil {
		g.unqueueLocked(tk, names)
		for _, a := range firstCrowd(names, tk.r.Wants).agents {
			a.reviewLocked()
		}
		g.serveIfLocked(names, func(s *separate) bool {
			return s.differ || s.readers() > 0 && s.crowd.takers == s.crowd.line.Len() // no readers wait that writers wait for
		})
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	<-tk.answered // at was cleared, so the answer was sent or is about to be
	if tk.granted {
		tk.r.got.Drop(tk.r.Caller.Handle())
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endLocked(names, tk.r, nil, tk.start)
}

// aheadLocked describes what a ticket waits for: on the first name without room, the newest of what was let
// through.
func (g *gate) aheadLocked(names []*separate, tk *ticket) Ahead {
	ahead := Ahead{Local: true}
	for i, q := range names {
		if q == nil {
			continue
		}
		s := q
		position := len(s.through) + before(&s.crowd.line, tk)
		if position <= ahead.Position {
			continue
		}
		ahead = Ahead{Local: true, Position: position}
		if ahead.Entry.Kind.Mode = tk.r.Wants[i].Kind.Mode; len(s.through) == 0 {
			continue
		}
		switch e := s.through[len(s.through)-1]; {
		case e.r == nil: // else its place is about to be granted, at most
			ahead.Entry.Kind.Mode, ahead.Origin = e.hold.describe()
			ahead.Held, ahead.Candidacy = true, e.hold.candidacy
			ahead.Entry.Name, ahead.Granted = e.hold.place.Node(), e.hold.place.Granted
		case e.r != nil:
			ahead.Origin = e.r.Origin
			if at := slices.IndexFunc(s.crowd.agents, func(a *agent) bool { return &a.request == e.r }); at >= 0 && s.crowd.agents[at].ahead.Position > 0 {
				ahead = s.crowd.agents[at].ahead.behind(position)
			}
		}
	}
	return ahead
}

// before returns how many tickets of a line are ahead of one of them. It looks from both ends: what leaves is often the
// first of thousands, and what has come is the last.
func before(line *list.List, tk *ticket) (n int) {
	for first, last := line.Front(), line.Back(); first != nil && first.Value != tk; first, last = first.Next(), last.Prev() {
		if n++; last.Value == tk {
			return line.Len() - n
		}
	}
	return n
}

// gateCrew is the gate as the agent of a place sees it, with the first of its names.
type gateCrew struct {
	*gate
	first *separate
}

var _ crew = gateCrew{}

// Lock and Unlock implement crew.
func (c gateCrew) Lock()   { c.mu.Lock() }
func (c gateCrew) Unlock() { c.mu.Unlock() }

func (c gateCrew) nextFor(of *Request) *ticket {
	return nextOf(&c.first.crowd.line, false, func(tk *ticket) bool { return wantSame(tk.r.Wants, of.Wants) })
}

func (c gateCrew) unqueueLocked(tk *ticket) {
	c.gate.unqueueLocked(tk, c.names(nil, tk.r.Wants))
}

func (c gateCrew) agentMeetsLocked(a *agent, at waitingPlace) {
	c.meetsLocked(&a.request, at)
}

func (c gateCrew) holdsLocked(a *agent, h *Hold) (admitted bool) {
	for _, e := range admissionsOf(c.names(nil, a.request.Wants), &a.request) {
		e.hold = h
	}
	return true
}

func (c gateCrew) agentEnds(a *agent, tk *ticket, got *Hold, left *place.Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names(nil, a.request.Wants)
	crowd := c.first.crowd
	crowd.agents = slices.DeleteFunc(crowd.agents, func(o *agent) bool { return o == a })
	if since := a.request.NoSessionSince; !since.IsZero() {
		crowd.noSessionSince = since
	}
	if tk == nil || got != nil {
		c.endLocked(names, &a.request, got, left)
		return
	}
	tk.r.admitted = true // the hold was lost before it was live; so tk begins again
	for _, e := range admissionsOf(names, &a.request) {
		*e = admission{r: tk.r}
	}
}

// points returns what a request that waits at the gate stands behind: what was let through on those of its names
// that have no room.
func (g *gate) points(r *Request) (all []Behind) {
	type found struct {
		admission
		want place.Want
	}
	var through []found
	g.mu.Lock()
	for i, q := range g.names(new(few)[:0], r.Wants) {
		if q == nil || counts(&r.Wants[i]) && !q.isFull(nil, q.limit(&r.Wants[i], q.ticketOf(r))) {
			continue
		}
		for _, e := range q.through {
			if q.keepsOut(&e, &r.Wants[i]) {
				through = append(through, found{e, r.Wants[i]})
			}
		}
	}
	g.mu.Unlock()
	for _, f := range through {
		var points []Behind
		switch {
		case f.hold != nil:
			nodes, _ := f.hold.Nodes()
			for _, n := range nodes {
				n.Mode = f.want.Kind.Mode
				points = append(points, Behind{Node: n, Itself: true})
			}
		case f.at != nil && f.at.own != nil:
			modes := queue.ModesOf(f.want.Kind.Mode)
			if mode := f.admission.want(f.want.Path).Kind.Mode; mode.Excludes(f.want.Kind.Mode) {
				modes |= queue.ModesOf(mode) // it waits for what that waits for
			}
			points, _ = f.at.points(f.r.Wants, modes)
			for i := range points {
				points[i].Itself = true
			}
		}
		for _, b := range points {
			if b.Node.Name == f.want.Name {
				all = append(all, b)
			}
		}
	}
	return all
}

// ticketOf returns the ticket of a request in the line of a name where numbers of permits differ; nil if there is none.
func (s *separate) ticketOf(r *Request) *ticket {
	if !s.differ || s.crowd == nil {
		return nil
	}
	for at := s.crowd.line.Front(); at != nil; at = at.Next() {
		if tk := at.Value.(*ticket); tk.r == r {
			return tk
		}
	}
	return nil
}

// keepsOut reports whether a request that waits at the gate waits for what was let through on one of its names. Readers
// that are as many as may be under way wait for other contenders, or are about to be granted the lock.
func (s *separate) keepsOut(e *admission, w *place.Want) bool {
	mode := e.want(w.Path).Kind.Mode
	if counts(w) {
		return !mode.Joins()
	}
	return e.at != nil || mode.Excludes(w.Kind.Mode)
}
