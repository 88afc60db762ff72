package place

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// line is what a waiter knows of the queue ahead of its own node, for one wait. The
// queue is listed once, and the line gets shorter as nodes are found to be gone. No client of this
// library gets ahead of a node that exists. refresh lists again if too many nodes are left to walk,
// after each change for permits, and if the connection has changed or other programs' nodes are there.
//
// Thousands of waiters of one session may sleep in one queue. So a line keeps only what the
// waiter can use when it wakes, and the session's own contenders are in Desk.peers, once for all
// waiters.
//
// Invariants:
//   - While known is set, the line has each node ahead for which ours has to wait, in others, or in
//     Desk.peers with a sequence number below before. A node that the line lacks blocks only nodes that
//     the line has.
//   - While watched is not nil, it has the nodes that queue.Decide has named, and no reply or event
//     has shown that one of them is gone.
//   - The waiter relies on the absence of a node ahead only as acquire says. After an event the next
//     read is on the same connection, or the queue is listed again: a reply shows the session how far
//     its server is, and an event does not. A contender leaves Desk.peers after a reply.
//   - While proven is set, what the line says of the nodes ahead was true in a state that had our node.
type line struct {
	p *Place
	c *ownNode // our own node

	sight   Sight              // of what is known
	self    queue.Node         // our own node, as listed; zero before the first list
	watched []queue.Node       // the contenders to watch; nil: queue.Decide names them next
	watches []*session.Watched // of each in watched, the watch; nil: it is to be armed
	others  []queue.Node       // contenders ahead, in the order of the queue: those that ours has to wait for and that were not in Desk.peers when the queue was listed
	before  int64              // the sequence number of the nearest contender that has gone, or of self: what is between the two does not count
	lowered []string           // writers' nodes ahead that were found to be readers', and stay so; a list shows them as writers'
	known   bool               // the line may be walked; else the queue is listed when the watched contenders have changed
	sole    bool               // the list showed one contender ahead, and no more
	proven  bool               // one state has shown our own node, and what the line says of those ahead: see acquire
	spare   int                // for permits: so many of watched may leave before the queue is listed again
	ahead   int                // how many contenders are ahead
	passed  int                // how many of them ours need not wait for

	awaitsGrant bool // for permits: the last of watched waits itself, and the queue is listed again when it is granted
}

// most returns how many contenders that a waiter waits for may be left in a line that is walked.
// A walk costs a read for each node that is gone, and then one of our own. Where more are left, a list, which is one
// request, is less work: for a writer, if one is left. Readers have a higher limit: when a writer leaves, all readers behind
// it walk, and each of their lists would contain all of them.
func (l *line) most() int {
	if l.self.Kind.Mode.Excludes(l.self.Kind.Mode) {
		return 0
	}
	return max(maxWalkedByReader, l.ahead/listedPerRead)
}

const (
	maxWalkedByReader = 8
	listedPerRead     = 500 // a list of so many contenders costs a server about as much as one read
)

// waitsFor reports whether our contender has to wait for one that is ahead of it.
func (l *line) waitsFor(o queue.Node) bool {
	return l.self.Kind.Mode.Excludes(o.Kind.Mode)
}

// refresh returns the line, and the index of our own node: without a request while the line can be
// walked, and otherwise from a new list of the queue.
func (l *line) refresh(ctx context.Context) (q []queue.Node, self int, err error) {
	if q := l.walk(); q != nil {
		return q, len(q) - 1, nil
	}
	desk := l.p.Desk
	l.sight.Gen = desk.Session.Generation()
	q, self, err = l.p.listQueue(ctx, l.c)
	if err != nil {
		return nil, 0, err
	}
	l.reset(q, self)
	return q, self, nil
}

// reset takes over a new list, with our own node at index self. A waiter for a permit lists again
// whatever happens, and others do if they would have to walk too far: these keep nothing.
func (l *line) reset(q []queue.Node, self int) {
	desk := l.p.Desk
	l.self, l.before, l.ahead, l.passed, l.others = q[self], q[self].Seq, queue.Position(q, self), 0, nil
	l.sole, l.proven = self == 1, true // TestSoleContenderAhead
	for i := range q[:self] {
		if slices.Contains(l.lowered, q[i].Name) {
			q[i].Kind.Mode = q[i].Kind.Mode.Lowered() // TestReadersBehindManyLoweredPlaces
		}
	}
	l.sight.ByEvent, l.known = false, l.self.Kind.Permits == 0
	if !l.known {
		l.p.lowered = queue.Lowered(q, self)
		l.p.marks = l.p.marks || l.p.lowered // a contender behind may have seen it wait
		return
	}
	id := desk.Session.ID()
	desk.mu.Lock()
	defer desk.mu.Unlock()
	peers := desk.peers[l.c.dir]
	for i, o := range q[:self] {
		if o.Seq == q[i+1].Seq {
			l.known = false // another program has made one, so the order of the two is not known
		}
		for len(peers) > 0 && peers[0].Seq < o.Seq {
			peers = peers[1:]
		}
		own := len(peers) > 0 && peers[0].Name == o.Name // as a rule: another waiter has seen it
		if !own {
			if c := desk.enqueued[o.GUID.Serial]; c != nil && o.GUID.Session == id && c.node() == o.Name {
				peers, own = desk.addPeerLocked(c, o), true
			}
		}
		switch {
		case !l.waitsFor(o):
			l.passed++
		case !own:
			l.others = append(l.others, o)
		}
	}
	if l.known = l.known && len(l.others) <= l.most()+1; !l.known { // the one to watch may be one of them, and goes first
		l.others = nil
	}
}

// walk returns the line up to our own node, without a request, once a watched contender has
// gone. It returns nil if the queue must be listed.
func (l *line) walk() []queue.Node {
	if !l.known {
		return nil
	}
	desk, most, q := l.p.Desk, l.most(), slices.Clone(l.others)
	desk.mu.Lock()
	peers := desk.peers[l.c.dir]
	for i, _ := findPeer(peers, queue.Node{Seq: l.before}); i > 0 && len(q) <= most; i-- {
		if o := peers[i-1]; l.waitsFor(o) {
			q = append(q, o)
		}
	}
	desk.mu.Unlock()
	queue.Sort(q)
	if len(q) > most {
		return nil
	}
	l.ahead = len(q) + l.passed
	return append(q, l.self)
}

// forget makes the queue be listed again.
func (l *line) forget() { l.watched, l.known = nil, false }

// removeGone takes out the watched node at index i, which was found to be gone on connection
// gen. byEvent means that an event reported it. Behind a node of another recipe the
// line is not walked but listed again.
func (l *line) removeGone(i int, gen uint64, byEvent bool) {
	l.sight = Sight{gen, byEvent}
	l.known = l.known && l.p.Desk.cfg.Dialect.Walks(l.watched[i])
	l.pass(i)
}

// pass takes out the watched node at index i, which ours need not wait for. No other
// node that it waits for is behind that one.
func (l *line) pass(i int) {
	name := l.watched[i].Name
	l.before, l.watched, l.proven = l.watched[i].Seq, nil, false
	l.others = slices.DeleteFunc(l.others, func(o queue.Node) bool { return o.Name == name })
}

// seen records that a node's state is known on connection gen: see Sight.Combine. It returns false
// if the queue must be listed again.
func (l *line) seen(gen uint64, read bool) bool {
	if !l.sight.Combine(gen, read) {
		l.forget()
		return false
	}
	return true
}

// readNodes reads our own nodes, for a grant, many at a time. gen is the generation of the connection that showed all of
// them; 0 if that was more than one.
func (p *Place) readNodes(ctx context.Context) (gen uint64, err error) {
	gen = p.Desk.Session.Generation()
	failed := make([]error, len(p.nodes))
	p.eachNode(func(i int) {
		c := p.nodes[i]
		n, err := p.Desk.Session.Read(ctx, "watch", c.path)
		if err == nil {
			err = p.owns(n)
		}
		if err != nil {
			failed[i] = p.missing(c, err)
		}
	})
	for _, err := range failed {
		if err != nil {
			return 0, err
		}
	}
	if p.Desk.Session.Generation() != gen {
		gen = 0
	}
	return gen, nil
}

// eachNode calls f with the index of each of our own nodes, for many at a time, and returns when all calls have.
func (p *Place) eachNode(f func(i int)) {
	for first := 0; first < len(p.nodes); first += session.MaxLone / 4 {
		var others sync.WaitGroup
		for i := first + 1; i < min(first+session.MaxLone/4, len(p.nodes)); i++ {
			others.Go(func() { f(i) })
		}
		f(first)
		others.Wait()
	}
}

// listQueue lists the queue of a name, up to our own node if that is not for a permit. i is our node's index. It applies
// max_contenders, if that was not done before, and returns an error for a contender that conflicts
// with ours.
func (p *Place) listQueue(ctx context.Context, c *ownNode) (q []queue.Node, i int, err error) {
	desk := p.Desk
	q, err = Znode{desk, c.dir}.list(ctx)
	if errors.Is(err, driver.ErrNoNode) {
		return nil, 0, errs.ErrNodeGone
	}
	if err != nil {
		return nil, 0, desk.cfg.explainList(err, c.dir)
	}
	i = slices.IndexFunc(q, func(o queue.Node) bool { return o.Name == c.node() })
	if i < 0 { // TestPermitIsNotGrantedWithoutItsNode
		return nil, 0, errs.ErrNodeGone
	}
	desk.mu.Lock()
	q[i].Kind = c.kind // the node's name may still be a writer's
	desk.mu.Unlock()
	if err := queue.Conflict(q, i); err != nil {
		return nil, 0, err
	}
	count := i + 1
	if q[0].MayBeKept() {
		count-- // if it is not in use, its client gives it up for another contender
	}
	if !p.limitChecked && count > desk.cfg.MaxContenders {
		return nil, 0, desk.cfg.tooMany()
	}
	if c.kind.Permits == 0 {
		q = q[:i+1]
	}
	return q, i, nil
}

// Sight names the connection of a waiter's newest knowledge of the queue. Its rule is pure.
type Sight struct {
	Gen     uint64 // generation of that connection; 0: not certain
	ByEvent bool   // the newest knowledge is from an event, and nothing was read since
}

// Combine adds the knowledge of a node on connection gen. read means that it was read just
// now, and not by an earlier watch. Combine returns false if the last event was on another
// connection: the server of gen may lag behind that event, so the two prove nothing together.
func (s *Sight) Combine(gen uint64, read bool) bool {
	if s.ByEvent && gen != s.Gen {
		return false
	}
	if read {
		s.ByEvent = false
	}
	if gen != 0 {
		s.Gen = gen
	}
	return true
}
