package local

import (
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Nodes returns the nodes of a hold. ok is false if they are about to go.
func (h *Hold) Nodes() (all []Node, ok bool) {
	own, ok := h.place.Contenders()
	for i, c := range own {
		all = append(all, Node{c, h.wants[i].Name})
	}
	return all, ok
}

// Behind returns what a request stands behind that waits for other contenders. own is the place with
// which it has begun to wait last, and nearest what it waited for then; own is nil if it waits in the
// local queue only. ok is false if it does not wait at the moment, or if where it stands is not known
// yet.
func (qs *Queues) Behind(r *Request, own *place.Place, nearest place.Contender) (all []Behind, ok bool) {
	qs.mu.Lock()
	q, waits := qs.byPath[r.Wants[0].Path], r.blocked && !r.served
	qs.mu.Unlock()
	switch {
	case !waits || q == nil:
		return nil, false
	case own != nil:
		s := waitingPlace{own, nearest}
		return s.points(r.Wants, nil)
	}
	return q.behind(r)
}

// behind is Queues.Behind for a request that waits in the local queue. It waits for the tickets ahead
// of it that it excludes, for those that these exclude, and so on. What all of these wait for is ahead of
// the leader's place, or is the hold that is in their way.
func (q *Queue) behind(r *Request) (all []Behind, ok bool) {
	q.mu.Lock()
	modes, waits := q.modesAheadLocked(r)
	lead, leads, held := q.lead, q.leader != nil, q.current
	q.mu.Unlock()
	if !waits {
		return nil, false
	}
	if leads && lead.own != nil {
		if all, ok = lead.points(r.Wants, modes); !ok {
			return nil, false
		}
	}
	if held == nil || held.IsOver() {
		return all, len(all) > 0
	}
	nodes, ok := held.Nodes()
	if !ok {
		return nil, false
	}
	for _, n := range nodes {
		for _, m := range modes {
			n.Mode = m
			all = append(all, Behind{Node: n, Itself: true})
		}
	}
	return all, len(all) > 0
}

// modesAheadLocked returns the modes of a request in the queue and of those ahead of it that it waits
// for, without repetition. waits is false if it is not in the queue.
func (q *Queue) modesAheadLocked(r *Request) (modes []queue.Mode, waits bool) {
	at := q.waiters.Back()
	for at != nil && at.Value.(*ticket).r != r {
		at = at.Prev()
	}
	if at == nil {
		return nil, false
	}
	set := queue.ModesOf(r.Mode)
	modes = append(modes, r.Mode)
	add := func(o *Request) {
		if m := o.Mode; !o.Try && !set.Has(m) && set.Exclude(m) {
			set |= queue.ModesOf(m)
			modes = append(modes, m)
		}
	}
	for at = at.Prev(); at != nil; at = at.Prev() {
		add(at.Value.(*ticket).r)
	}
	if q.leader != nil {
		add(q.leader.r)
	}
	return modes, true
}
