package local

import (
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// What the gate has let through, and what it lets through next.

// hasRoom reports whether one more may be let through on a name, if the hold instead was gone.
func (s *separate) hasRoom(w *place.Want, instead *Hold) bool {
	through := len(s.through)
	if instead != nil && slices.ContainsFunc(s.through, func(e entry) bool { return e.hold == instead }) {
		through--
	}
	return through < max(w.Kind.Permits, 1)
}

// enterLocked lets a request through.
func enterLocked(names []*separate, r *Request) {
	r.admitted = true
	for i, q := range names {
		if q == nil {
			continue
		}
		s := q
		if s.permits = r.Wants[i].Kind.Permits; s.through == nil {
			s.through = s.one[:0]
		}
		s.through = append(s.through, entry{r: r})
	}
}

// entriesOf returns the entries of a request.
func entriesOf(names []*separate, r *Request) (all []*entry) {
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
func (g *gate) leaveLocked(names []*separate, is func(*entry) bool) {
	for _, q := range names {
		if q == nil {
			continue
		}
		s := q
		if at := slices.IndexFunc(s.through, func(e entry) bool { return is(&e) }); at >= 0 {
			s.through = slices.Delete(s.through, at, at+1)
		}
	}
	g.serveLocked(names)
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

// nextLocked returns the ticket that is let through next on a name; nil if none may pass. instead is a hold that
// counts as gone; nil: none does.
func (g *gate) nextLocked(q *separate, instead *Hold) *ticket {
	s := q
	if first := s.crowd.line.Front(); first == nil || s.crowd.several == 0 && !s.hasRoom(&first.Value.(*ticket).r.Wants[0], instead) {
		return nil // without a look at each of thousands
	}
	return nextOf(&q.crowd.line, true, func(tk *ticket) bool {
		names := g.names(new(few)[:0], tk.r.Wants)
		for i, o := range names {
			if o != nil && !o.hasRoom(&tk.r.Wants[i], instead) && tk.passed <= maxPassed {
				return false
			}
		}
		return true
	})
}

// countSeveral adds n to the counts of those that want several names, if a ticket does.
func countSeveral(names []*separate, tk *ticket, n int) {
	for _, q := range names {
		if q != nil && len(tk.also) > 0 {
			q.crowd.several += n
		}
	}
}

// passesLocked notes that those that want several names are passed over, on some of them: by a ticket, or by what
// has just come.
func passesLocked(names []*separate, by *ticket) {
	for _, q := range names {
		if q == nil || q.crowd == nil || q.crowd.several == 0 {
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
	passesLocked(names, tk)
	g.unqueueLocked(tk, names)
	tk.patience.turnLocked(tk.since)
	if instead == nil {
		enterLocked(names, tk.r)
		tk.answer(false, nil)
		return
	}
	tk.r.admitted = true
	for _, q := range names {
		for i := 0; q != nil && i < len(q.through); i++ {
			if e := &q.through[i]; e.hold == instead {
				*e = entry{r: tk.r}
			}
		}
	}
	tk.answer(false, instead.place)
}

// unqueueLocked takes a ticket out of the lines of its names.
func (g *gate) unqueueLocked(tk *ticket, names []*separate) {
	countSeveral(names, tk, -1)
	also := tk.also
	for i, q := range names {
		switch {
		case q == nil:
		case firstOf(names[:i+1]) == q:
			q.crowd.line.Remove(tk.at)
		default:
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
	for _, e := range entriesOf(names, r) {
		e.hold = h
	}
}

// pass gives the place of a hold that is over to the next that waits at the gate, if that wants the same.
func (g *gate) pass(h *Hold) (taken bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], h.wants)
	c := firstCrowd(names)
	if c == nil {
		return false
	}
	tk := g.nextLocked(firstOf(names), h)
	if tk == nil || !wantSame(tk.r.Wants, h.wants) {
		return false
	}
	g.admitLocked(tk, h)
	return true
}

// leaves lets others through: the nodes of a hold are about to go.
func (g *gate) leaves(h *Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], h.wants)
	g.leaveLocked(names, func(e *entry) bool { return e.hold == h })
}

// meets notes where a request that was let through waits in ZooKeeper's queue.
func (g *gate) meets(r *Request, at waitingPlace) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := g.names(new(few)[:0], r.Wants)
	for _, e := range entriesOf(names, r) {
		e.at = &at
	}
}
