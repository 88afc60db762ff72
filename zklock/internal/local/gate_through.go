package local

import (
	"math"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// What the gate has let through, and what it lets through next.

// enterLocked lets a request through. Of readers it takes note where something has waited.
func enterLocked(names []*separate, r *Request) {
	for i, s := range names {
		switch {
		case counts(&r.Wants[i]):
			if s.crowd != nil {
				s.crowd.batch = 0
			}
		case s == nil || s.crowd == nil:
			continue
		default:
			s.crowd.readers++
			s.crowd.batch++
		}
		permits := int32(r.Wants[i].Kind.Permits)
		if len(s.through) == 0 {
			s.permits = permits
		}
		s.differ = s.differ || permits != s.permits
		s.permits = min(s.permits, permits)
		if s.through == nil {
			s.through = s.one[:0]
		}
		s.through = append(s.through, admission{r: r})
		r.admitted = true
	}
}

// admissionsOf returns the entries of a request.
func admissionsOf(names []*separate, r *Request) (all []*admission) {
	for _, q := range names {
		for i := 0; q != nil && i < len(q.through); i++ {
			if e := &q.through[i]; e.r == r {
				all = append(all, e)
			}
		}
	}
	return all
}

// leaveLocked takes the entries of a request or a hold out, and lets others through.
func (g *gate) leaveLocked(names []*separate, wants []place.Want, is func(*admission) bool) {
	for i, s := range names {
		if s != nil {
			s.leaveLocked(&wants[i], is)
		}
	}
	g.serveLocked(names)
}

// leaveLocked takes an admission out, if there is one.
func (s *separate) leaveLocked(w *place.Want, is func(*admission) bool) bool {
	at := slices.IndexFunc(s.through, func(e admission) bool { return is(&e) })
	if at < 0 {
		return false
	}
	s.through = slices.Delete(s.through, at, at+1)
	if !counts(w) {
		s.crowd.readers--
	}
	if s.differ && int(s.permits) == w.Kind.Permits {
		s.permits = 0
		for i := range s.through {
			if permits := int32(s.through[i].want(w.Path).Kind.Permits); i == 0 || permits < s.permits {
				s.permits = permits
			}
		}
	}
	return true
}

// serveLocked lets through what may pass on names that have changed.
func (g *gate) serveLocked(names []*separate) {
	for _, q := range names {
		if q == nil || q.crowd == nil {
			continue
		}
		for tk := g.nextLocked(q, nil); tk != nil; tk = g.nextLocked(q, nil) {
			g.admitLocked(tk, nil)
		}
	}
}

// resume lets those through that a pause has held up: see yielding.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	var held []*separate
	for _, s := range g.byPath {
		if s.crowd != nil && s.crowd.several > 0 {
			held = append(held, s)
		}
	}
	if g.serveLocked(held); len(held) > 0 {
		g.resumedLocked()
	}
}

// nextLocked returns the ticket that is let through next on a name; nil if none may pass. instead is a hold that
// counts as gone; nil: none does.
func (g *gate) nextLocked(q *separate, instead *Hold) *ticket {
	first := q.crowd.line.Front()
	if first == nil {
		return nil
	}
	c := q.crowd
	mixed := c.takers > 0 && c.takers < c.line.Len()
	if c.several == 0 {
		w := first.Value.(*ticket).r.Wants[0]
		stuck := !q.hasRoom(&w, instead, max(w.Kind.Permits, 1))
		for _, w.Kind.Mode = range []queue.Mode{queue.Exclusive, queue.Shared} {
			stuck = stuck && (!mixed || !q.hasRoom(&w, instead, max(w.Kind.Permits, 1)))
		}
		if stuck {
			return nil // without a look at each of thousands
		}
	}
	yields := c.several > 0 && g.yieldsLocked(time.Now())
	if yields && c.several == c.line.Len() {
		return nil
	}
	limit := math.MaxInt // of permits, for those that wait behind what fits has seen
	fits := func(tk *ticket) bool {
		if w := &tk.r.Wants[0]; len(tk.r.Wants) == 1 {
			room := q.hasRoom(w, instead, min(limit, max(w.Kind.Permits, 1)))
			limit = tk.lowers(limit)
			return room
		}
		if yields {
			return false
		}
		for i, o := range g.names(new(few)[:0], tk.r.Wants) {
			if w := &tk.r.Wants[i]; !o.hasRoom(w, instead, 1) && tk.passed <= maxPassed {
				return false
			}
		}
		return true
	}
	if mixed && q.pressed() {
		readers := c.batch < maxBatch
		if tk := nextOf(&c.line, true, func(tk *ticket) bool { return takes(tk.r.Wants) != readers && fits(tk) }); tk != nil {
			return tk
		}
	}
	return nextOf(&c.line, true, fits)
}

// countLocked adds n to the counts that a ticket at the gate belongs to.
func countLocked(names []*separate, tk *ticket, n int) {
	for i, q := range names {
		if len(tk.also) > 0 {
			q.crowd.several += n
		}
		if counts(&tk.r.Wants[i]) {
			q.crowd.takers += n
		}
	}
}

// passesLocked notes that those that want several names are passed over, on some of them: by a ticket, or by what
// has just come. Readers take no room from them.
func passesLocked(names []*separate, wants []place.Want, by *ticket) {
	for i, q := range names {
		if q == nil || q.crowd == nil || q.crowd.several == 0 || !counts(&wants[i]) {
			continue
		}
		for at := q.crowd.line.Front(); at != nil && at.Value != by; at = at.Next() {
			if tk := at.Value.(*ticket); len(tk.also) > 0 {
				tk.passed++
			}
		}
	}
}

// admitLocked lets a ticket through. instead is the hold whose place it replaces; nil: none.
func (g *gate) admitLocked(tk *ticket, instead *Hold) {
	names := g.names(new(few)[:0], tk.r.Wants)
	passesLocked(names, tk.r.Wants, tk)
	g.unqueueLocked(tk, names)
	if takes(tk.r.Wants) {
		tk.patience.turnLocked(tk.since)
	}
	if instead == nil {
		enterLocked(names, tk.r)
		g.asksLocked(tk.r)
		tk.answer(false, nil)
		return
	}
	tk.r.admitted = true
	g.asksLocked(tk.r)
	for _, q := range names {
		for i := 0; q != nil && i < len(q.through); i++ {
			if e := &q.through[i]; e.hold == instead {
				*e = admission{r: tk.r}
			}
		}
	}
	tk.answer(false, instead.place)
}

// unqueueLocked takes a ticket out of the lines of its names.
func (g *gate) unqueueLocked(tk *ticket, names []*separate) {
	countLocked(names, tk, -1)
	first, also := firstOf(names, tk.r.Wants), tk.also
	for _, q := range names {
		if q == first {
			q.crowd.line.Remove(tk.at)
		} else {
			q.crowd.line.Remove(also[0])
			also = also[1:]
		}
	}
	tk.at, tk.also = nil, nil
}

// wantSame reports whether the wants of two requests are the same.
func wantSame(wants, others []place.Want) bool {
	return slices.EqualFunc(wants, others, func(v, w place.Want) bool { return v.Path == w.Path && v.Kind == w.Kind })
}

// holds notes the newest hold that was made for a request that was let through.
func (g *gate) holds(r *Request, h *Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], r.Wants)
	for _, e := range admissionsOf(names, r) {
		e.hold = h
	}
}

// pass gives the place of a hold that is over to the next that waits at the gate, if that wants the same.
func (g *gate) pass(h *Hold) (taken bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], h.wants)
	first := firstOf(names, h.wants)
	if first.crowd == nil || !slices.ContainsFunc(first.through, func(e admission) bool { return e.hold == h }) {
		return false // nothing waits, or the hold is a reader's by now
	}
	tk := g.nextLocked(first, h)
	if tk == nil || !wantSame(tk.r.Wants, h.wants) {
		return false
	}
	if int(first.permits) < h.wants[0].Kind.Permits {
		h.place.LooksNext()
	}
	g.admitLocked(tk, h)
	return true
}

// leaves lets others through: the nodes of a hold are about to go, or it has become a reader's.
func (g *gate) leaves(h *Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], h.wants)
	g.leaveLocked(names, h.wants, func(e *admission) bool { return e.hold == h })
}

// meets notes where a request that was let through waits in ZooKeeper's queue.
func (g *gate) meets(r *Request, at waitingPlace) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meetsLocked(r, at)
}

func (g *gate) meetsLocked(r *Request, at waitingPlace) {
	names := g.names(new(few)[:0], r.Wants)
	for _, e := range admissionsOf(names, r) {
		e.hold, e.at = nil, &at // a hold that could not begin is of a place that is gone: TestCircleAtTheGateAfterAGrantThatFailed
	}
	g.serveIfLocked(names, func(s *separate) bool { return s.readers() > 0 }) // those that wait are not waited for
}

// serveIfLocked lets through what may pass if something other than room has changed.
func (g *gate) serveIfLocked(names []*separate, changed func(*separate) bool) {
	if slices.ContainsFunc(names, func(s *separate) bool { return s != nil && changed(s) }) {
		g.serveLocked(names)
	}
}
