package place

import (
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// line is what a waiter knows of the queue ahead of its own node. The queue is listed
// once, and the line gets shorter as nodes are found to be gone.
//
// Invariants:
//   - Every node that is ahead of ours in the ensemble is in q, or can only block nodes
//     that are in q.
//   - After a node ahead is found to be gone, our own node has to be read before the
//     waiter may rely on that: on connection sight.Gen, or on one whose server has certainly
//     applied all transactions that the server of gen had applied. A reply shows the
//     session how far its server is; an event does not. So after an event the next read
//     has to be on the same connection, or the queue is listed again.
type line struct {
	p *Place
	c *contender // our own node

	dialect *queue.Dialect
	q       []queue.Node // up to our own node, which is the last; nil: the queue has to be listed
	sight   Sight        // of q
	shorter bool         // a node has left since the queue was listed

	// ownSerials has the serial numbers of this session's own contenders in q whose nodes
	// were known when q was listed. The node of one that was unregistered since is gone.
	ownSerials map[uint64]bool
}

// These limit how many contenders that a waiter waits for may be left in a line that is
// walked. A walk costs a read for each node that is gone; where more are left, a list,
// which is one request, is less work. Readers have the higher limit: when a writer
// leaves, all readers behind it walk, and each of their lists would contain all of
// them.
const (
	maxWalkedByWriter = 1
	maxWalkedByReader = 8

	// A list of so many contenders costs a server about as much as one read of a node. With
	// more of them in the line, readers walk past more writers.
	listedPerRead = 500
)

// removeGone takes out the node at index i, which was found to be gone on connection
// gen. byEvent means that an event reported it. Behind a node of another recipe the
// line is not walked: it has to be listed again.
func (l *line) removeGone(i int, gen uint64, byEvent bool) {
	walks := l.dialect.Walks(l.q[i])
	l.q = slices.Delete(l.q, i, i+1)
	l.sight = Sight{gen, byEvent}
	if l.shorter = true; !walks {
		l.q = nil
	}
}

// short reports whether few enough nodes are left to read them one by one.
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
	return writers <= max(maxWalkedByReader, self/listedPerRead)
}

// seen records, by Sight.Combine, that a node's state is known on connection gen. read means that it was
// read just now, and not by an earlier watch. seen returns false if the last event was
// on another connection: then the two do not count together, and the queue has to be
// listed again.
func (l *line) seen(gen uint64, read bool) bool {
	if !l.sight.Combine(gen, read) {
		l.q = nil
		return false
	}
	return true
}

// listed replaces the line's contents by a new list.
func (l *line) listed(q []queue.Node) {
	desk := l.p.Desk
	l.q, l.sight.ByEvent, l.shorter = q, false, false
	clear(l.ownSerials)
	id := desk.DS.ID()
	desk.Mu.Lock()
	defer desk.Mu.Unlock()
	for _, o := range q[:len(q)-1] {
		if o.GUID.Session != id {
			continue
		}
		if c := desk.enqueued[o.GUID.Serial]; c != nil && c.node() == o.Name {
			if l.ownSerials == nil {
				l.ownSerials = make(map[uint64]bool)
			}
			l.ownSerials[o.GUID.Serial] = true
		}
	}
}

// update takes out the session's own contenders that have gone since the list, which
// costs no request. If the line is then too long to be walked, update has it listed
// again.
func (l *line) update() {
	l.removeOwnGone()
	if l.shorter && !l.short() {
		l.q = nil
	}
}

// removeOwnGone takes out the session's own contenders that were unregistered since the
// list.
func (l *line) removeOwnGone() {
	desk := l.p.Desk
	if len(l.ownSerials) == 0 {
		return
	}
	self := len(l.q) - 1
	desk.Mu.Lock()
	defer desk.Mu.Unlock()
	rest := slices.DeleteFunc(l.q[:self:self], func(o queue.Node) bool {
		return l.ownSerials[o.GUID.Serial] && o.GUID.Session == desk.DS.ID() && desk.enqueued[o.GUID.Serial] == nil
	})
	if len(rest) < self {
		l.q = append(rest, l.q[self])
	}
}

// far reports whether the place cannot be granted next, because another contender waits
// ahead of it. What the waiter does not know makes it only seem further back: the queue may
// be shorter than the line by now. A place with several names waits for one after the other,
// so while it is far on one of them, it cannot be granted next, wherever it is on the others.
func (l *line) far() bool { return !queue.First(l.q, len(l.q)-1) }
