package place

import (
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// line is what a waiter knows of the queue ahead of its own node. It was listed once
// and gets shorter as nodes are found to be gone.
//
// Invariants:
//   - Everything that is ahead of our node in the ensemble is in q, or can only be
//     in the way of what is in q.
//   - Nothing that was found to be gone counts unless our own node is seen later: on
//     connection gen, or on one whose server is known to be no further behind. A
//     reply tells the session how far a server is, an event does not. So after an
//     event the next read has to be on the same connection, or the queue is listed
//     again.
type line struct {
	p *Place
	c *contender // our own node

	dialect *queue.Dialect
	q       []queue.Node // up to our own node, which is the last; nil: to be listed
	gen     uint64       // connection on which the newest of it was seen; 0: not certain
	heard   bool         // the newest of it was reported by an event, and nothing was read since
	shorter bool         // something has left since it was listed

	// ours has the serials of this session's own contenders in q that had settled on
	// their nodes when q was listed. One that has been forgotten since is gone.
	ours map[uint64]bool
}

// How many contenders that matter may be left for a line to be walked, which costs a
// read for each that is gone. Beyond that a list, which costs one, is less work. But
// all readers behind a writer walk when that leaves, and each list would have all of
// them in it.
const (
	maxWalkedByWriter = 1
	maxWalkedByReader = 8
)

// left takes out the one at index i, which was found to be gone on connection gen.
func (l *line) left(i int, gen uint64, heard bool) {
	walks := l.dialect.Walks(l.q[i])
	l.q = slices.Delete(l.q, i, i+1)
	l.gen, l.heard = gen, heard
	if l.shorter = true; !walks {
		l.q = nil
	}
}

// short reports whether few enough are left to be asked for one by one.
func (l *line) short() bool {
	self := len(l.q) - 1
	if l.q[self].Kind.Mode != queue.Shared {
		return self <= maxWalkedByWriter
	}
	writers := 0
	for i := range self {
		if l.q[i].Kind.Mode == queue.Exclusive {
			writers++
		}
	}
	return writers <= maxWalkedByReader
}

// seen notes what is known of a node on connection gen, and whether that was read just
// now or by an earlier watch. false: what was heard before does not count beside it, and
// the queue is to be listed again.
func (l *line) seen(gen uint64, read bool) bool {
	if l.heard && gen != l.gen {
		l.q = nil
		return false
	}
	if read {
		l.heard = false
	}
	if gen != 0 {
		l.gen = gen
	}
	return true
}

// listed takes over a new list.
func (l *line) listed(q []queue.Node) {
	s := l.p.Desk
	l.q, l.heard, l.shorter = q, false, false
	clear(l.ours)
	id := s.DS.ID()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, o := range q[:len(q)-1] {
		if o.GUID.Session != id {
			continue
		}
		if c := s.enqueued[o.GUID.Serial]; c != nil && c.node == o.Name {
			if l.ours == nil {
				l.ours = make(map[uint64]bool)
			}
			l.ours[o.GUID.Serial] = true
		}
	}
}

// update takes out those of the session's own contenders that are gone since the list,
// which costs no request, and gives a line up that is too long to be walked.
func (l *line) update() {
	l.forget()
	if l.shorter && !l.short() {
		l.q = nil
	}
}

func (l *line) forget() {
	s := l.p.Desk
	if len(l.ours) == 0 {
		return
	}
	self := len(l.q) - 1
	s.Mu.Lock()
	defer s.Mu.Unlock()
	rest := slices.DeleteFunc(l.q[:self:self], func(o queue.Node) bool {
		return l.ours[o.GUID.Serial] && o.GUID.Session == s.DS.ID() && s.enqueued[o.GUID.Serial] == nil
	})
	if len(rest) < self {
		l.q = append(rest, l.q[self])
	}
}
