package place

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A name is warm if this client can prove that its next contender is alone in the queue,
// without a set of the parent in the same transaction. The proof:
//
//   - The suffix of a sequential node counts the creations below its parent since the
//     parent was created. Deletions do not change it.
//   - Our newest contender, on this session, had the suffix q. It was alone in the queue
//     when it was created, and the ensemble has confirmed that our delete has removed it.
//   - The new contender has the suffix q+1. So nothing was created in between, neither by
//     this session nor by others, unless the parent is another node by now.
//   - A data watch on the parent shows that it is the same node. The watch was armed by a
//     read that returned the parent's czxid as of q, on the connection on which the new
//     contender's create was answered, and it has not fired when the reply was read. If the
//     parent had been deleted before the create, the server would have sent the event first:
//     see driver.Session.Watch. The read may also come after the create: a node with that
//     czxid was there all the time.
//
// If one of these conditions does not hold, the client lists the queue, or sets the parent
// as for a name that is not warm. A set fires the watch, so the first set of any client
// makes the name cold.
//
// A warmth is what our newest contender below a parent proves once it is gone. It does not
// change any more once it is recorded.
type warmth struct {
	newest    newest
	suffix    int64        // the newest contender's
	czxid     int64        // the parent's
	successes int          // how many of our contenders in a row were alone and had successive suffixes
	watch     *parentWatch // on the parent; nil if the name was not used often enough
}

// parentWatch is a watch on a parent, which may still be on its way.
type parentWatch struct {
	settled chan struct{}    // closed when it is armed or has failed
	armed   *session.Watched // set before settled is closed; nil: it has failed
}

// newest names our newest contender below a parent, from before its create is sent.
type newest struct {
	session int64  // its session's id; 0: there was no contender
	serial  uint64 // its serial number
}

// armAfter is the number of successes after which the parent gets a watch. Fewer would make
// a name that is used once or twice cost a read, and a watch that the servers keep.
const armAfter = 2

// maxWarm limits how many watches a session has before it makes no further name warm.
const maxWarm = 1 << 15

// enqueuing records that a contender is about to be created below a path. From now on no
// earlier contender proves anything later. It returns what the one before it proves; nil if
// that is nothing.
func (p *parents) enqueuing(path string, contender newest) (before *warmth) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if !ok {
		return nil
	}
	known := e.Value.(*parent)
	if before = known.warmth; before != nil && before.newest.session != contender.session {
		before = nil
	}
	known.newest, known.warmth = contender, nil
	return before
}

// released records that a contender which was alone is gone, unless a later contender of
// this client exists or has existed.
func (p *parents) released(path string, now *warmth) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if !ok || e.Value.(*parent).newest != now.newest {
		return false
	}
	e.Value.(*parent).warmth = now
	return true
}

// begin is called once for each place, before its first create is sent.
func (p *Place) begin() {
	for _, c := range p.nodes {
		before := p.Desk.parents.enqueuing(c.dir, newest{p.Desk.DS.ID(), c.guid.Serial})
		if len(p.nodes) == 1 {
			p.before = before
		}
	}
}

// warm reports whether the place's only contender may be created without a set of its
// parent: as far as is known before the create, the proof will succeed.
func (p *Place) warm() bool {
	return p.replaces == nil && !p.doubtful && p.before != nil && p.before.watch.promising(p.Desk)
}

// promising reports whether the watch is on its way, or holds.
func (w *parentWatch) promising(desk *Desk) bool {
	if w == nil {
		return false
	}
	select {
	case <-w.settled:
		return w.holds(desk)
	default:
		return true
	}
}

// holds reports whether a settled watch proves that the parent is still the same node.
func (w *parentWatch) holds(desk *Desk) bool {
	gen, _ := desk.DS.Conn()
	return w.armed != nil && w.armed.Holds(gen)
}

// proven reports whether the place's contender, which was created without a set, is alone
// in the queue. It is called after the reply has been read. It waits until the watch is
// settled: its read was sent no later than about the same time as the create.
func (p *Place) proven(ctx context.Context) bool {
	if p.doubtful || p.Zxid == 0 || !p.successive() || p.before.watch == nil {
		return false
	}
	select {
	case <-p.before.watch.settled:
		return p.before.watch.holds(p.Desk)
	case <-ctx.Done():
	case <-p.Desk.Ctx.Done():
	}
	return false
}

// successive reports whether the contender's suffix follows that of the contender before it.
func (p *Place) successive() bool {
	n, _, _ := p.Desk.cfg.Dialect.Parse(p.nodes[0].node)
	return p.before != nil && n.Seq == p.before.suffix+1
}

// keepWarm is called when the ensemble has confirmed that a place's nodes are deleted. If
// the place was alone in the queue of its only name, its end is the beginning of the next
// proof.
func (p *Place) keepWarm() {
	desk := p.Desk
	if len(p.nodes) != 1 || p.parentCzxid == 0 || p.Others || p.doubtful {
		return
	}
	c := p.nodes[0]
	n, _, _ := desk.cfg.Dialect.Parse(c.node)
	now := &warmth{newest: newest{desk.DS.ID(), c.guid.Serial}, suffix: n.Seq, czxid: p.parentCzxid}
	if p.successive() && p.before.czxid == now.czxid {
		now.successes = p.before.successes + 1
		if p.before.watch.promising(desk) {
			now.watch = p.before.watch
		}
	}
	arm := now.watch == nil && now.successes >= armAfter && desk.Watches.Len() < maxWarm
	if arm {
		now.watch = &parentWatch{settled: make(chan struct{})}
	}
	if desk.parents.released(c.dir, now) && arm && !desk.Spawn(func() { desk.watchParent(c.dir, now) }) {
		close(now.watch.settled) // the session is over
	}
}

// watchParent arms the watch of a warmth. Its failure has no effect but that the name stays
// cold.
func (desk *Desk) watchParent(path string, now *warmth) {
	defer close(now.watch.settled)
	w, _, err := desk.Watches.Watch(desk.Ctx, path)
	if err == nil && w.Node.Stat.Czxid == now.czxid {
		now.watch.armed = w
	}
}
