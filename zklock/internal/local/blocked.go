package local

import (
	"iter"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Waiting is a request that waits for other contenders. Own is the place with which it has begun to wait
// last, and Nearest what it waited for then; Own is nil if it waits in the local queue only.
type Waiting struct {
	Request *Request
	Own     *place.Place
	Nearest place.NodeID
}

// Behind returns what each of these requests stands behind. There is nothing if it has left the queue, or if
// where it stands is not known yet. A request that has just got its lock may still have what it stood behind,
// of which what it waited for is gone. Behind walks once through the local queue of a name, however many of the
// requests are in it.
func (qs *Queues) Behind(waits []Waiting) [][]Behind {
	all := make([][]Behind, len(waits))
	local := make(map[*Queue]map[*Request]int) // the index of each request
	qs.mu.Lock()
	placed, atGate := make([]bool, len(waits)), []int(nil)
	for i, w := range waits {
		r := w.Request
		q := qs.byPath[r.Wants[0].Path]
		switch {
		case q == nil:
		case w.Own != nil:
			placed[i] = true
		case r.apart:
			atGate = append(atGate, i)
		default:
			if local[q] == nil {
				local[q] = make(map[*Request]int)
			}
			local[q][r] = i
		}
	}
	qs.mu.Unlock()
	for i, w := range waits {
		if placed[i] {
			s := waitingPlace{w.Own, w.Nearest}
			all[i], _ = s.points(w.Request.Wants, 0)
		}
	}
	for _, i := range atGate {
		all[i] = qs.gate.points(waits[i].Request)
	}
	for q, of := range local {
		q.behind(q.requestsLocked, of, all)
	}
	return all
}

// behind is Queues.Behind for requests that wait in the local queue, among the requests of the queue. Each waits for the tickets ahead
// of it that it excludes, for those that these exclude, and so on. What all of these wait for is ahead of
// the leader's place, or is the hold that is in their way.
func (q *Queue) behind(requests iter.Seq[*Request], of map[*Request]int, all [][]Behind) {
	modes := make(map[*Request]queue.Modes, len(of))
	q.mu.Lock()
	for r, ahead := range modesAhead(requests) {
		if _, asked := of[r]; asked && (q.leader == nil || r != q.leader.r) {
			modes[r] = ahead
		}
	}
	lead, leads, held := q.lead, q.leader != nil, q.current
	q.mu.Unlock()
	var nodes []NamedNode
	stays := true
	if held != nil && !held.IsOver() {
		nodes, stays = held.Nodes()
	}
	for r, ahead := range modes {
		points, ok := []Behind(nil), stays
		if ok && leads && lead.own != nil {
			points, ok = lead.points(r.Wants, ahead)
		}
		for _, n := range nodes {
			for m := range modesOf(ahead) {
				n.Mode = m
				points = append(points, Behind{Node: n, Itself: true})
			}
		}
		if ok {
			all[of[r]] = points
		}
	}
}

// requestsLocked yields the request of the leader, and those in the queue from the front on.
func (q *Queue) requestsLocked(yield func(*Request) bool) {
	if q.leader != nil && !yield(q.leader.r) {
		return
	}
	for at := q.waiters.Front(); at != nil; at = at.Next() {
		if !yield(at.Value.(*ticket).r) {
			return
		}
	}
}

// modesAhead yields each request of a local queue, from the front on, with the modes that it waits in: its
// own, those of the requests ahead that it excludes, of those that these exclude, and so on. A try does not
// wait for a holder.
func modesAhead(requests iter.Seq[*Request]) iter.Seq2[*Request, queue.Modes] {
	return func(yield func(*Request, queue.Modes) bool) {
		next := []queue.Modes{0} // by mode: what a request that comes next waits in
		for m := queue.Mode(1); m.Known(); m++ {
			next = append(next, queue.ModesOf(m))
		}
		for r := range requests {
			if !yield(r, next[r.Mode]) {
				return
			}
			for m := range next {
				if m > 0 && !r.Try && queue.Mode(m).Excludes(r.Mode) {
					next[m] |= next[r.Mode]
				}
			}
		}
	}
}
