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
//     when it was created. Our delete has removed it before the new one was created: in an
//     earlier transaction, or in the same one, in which deletes come first.
//   - The new contender has the suffix q+1. So nothing was created in between, neither by
//     this session nor by others, unless the parent is another node by now.
//   - A data watch on the parent shows that it is the same node. The watch was armed by a
//     read that returned the parent's czxid as of q, on the connection on which the new
//     contender's create was answered, and it has not fired when the reply was read. If the
//     parent had been deleted before the create, the server would have sent the event first:
//     see driver.Session.Watch. The read may also come after the create: a node with that
//     czxid was there all the time.
//
// A contender whose create was in doubt proves nothing. This is a second line: a twin would take
// a suffix, so the next suffix would not follow.
//
// If one of these conditions does not hold, the client lists the queue, or sets the parent
// as for a name that is not warm. A set fires the watch, so the first set of any client
// makes the name cold.
//
// A warmth is what a contender of ours proves once it is gone. It does not change any more
// once it is recorded. It belongs to one session: the watch and the create have to be on the
// same connection. It does not matter whether this client has created other contenders
// since: they have taken the suffix q+1.
type warmth struct {
	session   int64        // its session's id
	suffix    int64        // the contender's
	czxid     int64        // the parent's
	successes int          // how many of our contenders in a row were alone and had successive suffixes
	watch     *parentWatch // on the parent; nil if the name was not used often enough

	gone   *session.Write // the delete of its node; nil once the outcome is in goneBy
	goneBy int64          // the zxid of that delete
}

// parentWatch is a watch on a parent, which may still be on its way.
type parentWatch struct {
	settled chan struct{}    // closed when it is armed or has failed
	armed   *session.Watched // set before settled is closed; nil: it has failed
}

// armAfter is the number of successes after which the parent gets a watch. Fewer would make
// a name that is used once or twice cost a read, and a watch that the servers keep.
const armAfter = 2

// maxWarm limits how many watches a session has before it makes no further name warm. A server
// keeps each of them in memory, and each has to be set again after a reconnect.
const maxWarm = 1 << 15

// takeWarmth takes out what a contender of a session below a path has proven; nil if there
// is none. The next contender uses it up, whatever becomes of it.
func (p *parents) takeWarmth(path string, session int64) *warmth {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if !ok {
		return nil
	}
	taken := e.Value.(*parent).warmth
	e.Value.(*parent).warmth = nil
	if taken != nil && taken.session != session {
		return nil
	}
	return taken
}

// putWarmth records what a contender proves that was alone and is gone. It returns false if
// the parent is not known any more.
func (p *parents) putWarmth(path string, now *warmth) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if ok {
		e.Value.(*parent).warmth = now
	}
	return ok
}

// promising reports whether the watch is on its way, or holds on the connection with that
// generation.
func (w *parentWatch) promising(gen uint64) bool {
	if w == nil {
		return false
	}
	select {
	case <-w.settled:
		return w.holds(gen)
	default:
		return true
	}
}

// holds reports whether a settled watch proves that the parent is still the same node.
func (w *parentWatch) holds(gen uint64) bool { return w.armed != nil && w.armed.Holds(gen) }

// beginProof is called once for each place, before its first create is sent. It returns what
// our contender before it proves, if the place has one name; nil if that is nothing.
func beginProof(desk *Desk, wants []Want) (before *warmth) {
	for _, w := range wants {
		before = desk.parents.takeWarmth(w.Path, desk.DS.ID())
	}
	if len(wants) > 1 {
		return nil
	}
	return before
}

// isWarm reports whether a place's only contender may be created without a set of its
// parent: as far as is known before the create, the proof will succeed.
func isWarm(p *Place) bool {
	before := p.before
	if p.replaces != nil || p.doubtful || before == nil || before.gone == nil && before.goneBy == 0 {
		return false
	}
	gen, _ := p.Desk.DS.Conn()
	return before.watch.promising(gen)
}

// isProven reports whether a place's contender, which was created without a set, is alone in
// the queue. It is called after the reply has been read. It waits until the watch is settled
// and the delete is answered: both were sent at about the same time as the create, or
// earlier.
func isProven(ctx context.Context, p *Place) bool {
	if len(p.nodes) != 1 || p.doubtful || p.Zxid == 0 || !follows(p) || p.before.watch == nil {
		return false
	}
	if gone := p.before.gone; gone != nil && !waitFor(ctx, p.Desk, gone.Done) || !waitFor(ctx, p.Desk, p.before.watch.settled) {
		return false
	}
	gen, _ := p.Desk.DS.Conn()
	return Proof{
		Before:   p.before.suffix,
		Suffix:   p.suffix,
		Doubtful: p.doubtful,
		GoneBy:   p.before.deletedBy(),
		Zxid:     p.Zxid,
		Watched:  p.before.watch.holds(gen),
	}.Alone()
}

// deletedBy returns the zxid of the transaction that has deleted the contender's node; 0 if
// the delete has failed. It is called when the delete has been answered.
func (w *warmth) deletedBy() int64 {
	switch {
	case w.gone == nil:
		return w.goneBy
	case w.gone.Err != nil:
		return 0
	}
	return w.gone.Results[0].Zxid
}

// waitFor returns true when done is closed, and false if ctx or the session ends first.
func waitFor(ctx context.Context, desk *Desk, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-desk.Ctx.Done():
	}
	return false
}

// follows reports whether the suffix of a place's only contender follows that of the
// contender before it.
func follows(p *Place) bool {
	return p.before != nil && Follows(p.before.suffix, p.suffix)
}

// keepWarm is called when the delete of a place's nodes has been submitted. If the place was
// alone in the queue of its only name, its end is the beginning of the next proof.
func keepWarm(p *Place, gone *session.Write) {
	desk := p.Desk
	if len(p.nodes) != 1 || p.parentCzxid == 0 || HasOthers(p) || p.doubtful {
		return
	}
	c := p.nodes[0]
	now := &warmth{session: desk.DS.ID(), suffix: p.suffix, czxid: p.parentCzxid, gone: gone}
	// A watch that holds shows that the parent is the same node. The czxid is a second line.
	if follows(p) && p.before.czxid == now.czxid {
		now.successes = p.before.successes + 1
		if gen, _ := desk.DS.Conn(); p.before.watch.promising(gen) {
			now.watch = p.before.watch
		}
	}
	arm := now.watch == nil && now.successes >= armAfter && desk.Watches.Room(maxWarm)
	if arm {
		now.watch = &parentWatch{settled: make(chan struct{})}
	}
	if desk.parents.putWarmth(c.dir, now) && arm && !desk.Spawn(func() { watchParent(desk, c.dir, now) }) {
		close(now.watch.settled) // the session is over
	}
}

// watchParent arms the watch of a warmth. Its failure has no effect but that the name stays
// cold.
func watchParent(desk *Desk, path string, now *warmth) {
	defer close(now.watch.settled)
	w, _, err := desk.Watches.Watch(desk.Ctx, path)
	if err == nil && ArmedFor(w.Node.Stat.Czxid, now.czxid) {
		now.watch.armed = w
	}
}
