package place

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Desk is a session with what the places on it need: what all places of the client share, and
// the contenders that are registered on the session.
type Desk struct {
	Session *session.Session
	*Shared

	freshNames freshNames
	reads      chan struct{} // cap maxReads: one element for each read for an operator that is under way
	doubts     doubts

	// mu guards the state of all places, and what follows. A goroutine that holds it makes no
	// request, locks no other mutex and does not wait.
	mu       mutex.Mutex[mutex.Inner]
	enqueued map[uint64]*ownNode     // guarded by mu; the registered contenders, by serial number
	peers    map[string][]queue.Node // guarded by mu; those of them that waiters' lists have shown, by their locks' znodes, in the order of the queue
	lists    map[string]*sharedList  // guarded by mu; by the lock's znode, while a list is under way: the one that follows it, nil if no waiter needs it
	serial   uint64                  // guarded by mu; the newest serial number
	root     *rooting                // guarded by mu; nil: the root is not being made
}

// ownNode is one queue node of ours, from before its create is sent until the node is
// certainly gone.
//
// Invariants:
//   - It is registered with its desk from before its create is sent until its node is
//     gone.
//   - While path is empty, the outcome of its create is open. Once set, it never
//     changes. A second node with the same GUID is a late twin: a create that was given
//     up as lost was applied after all. A twin is deleted wherever it is seen.
type ownNode struct {
	dir  string // the lock's znode
	guid queue.GUID
	kind queue.Kind // guarded by the desk's mu once the place is queued
	path string     // guarded by the desk's mu until it is known; the node's path; "" while it is not known
}

// node returns the node's name below dir; "" while that is not known. It needs what a read of
// path needs.
func (c *ownNode) node() string {
	if c.path == "" {
		return ""
	}
	return c.path[len(c.dir)+1:]
}

// remains returns a delete for each node of the session that is known.
func (d *Desk) remains() []*session.Write {
	d.mu.Lock()
	defer d.mu.Unlock()
	writes := make([]*session.Write, 0, len(d.enqueued))
	for _, c := range d.enqueued {
		if c.path != "" {
			writes = append(writes, &session.Write{Kind: "close", Ctx: context.Background(), Done: make(chan struct{}),
				Ops: []driver.Op{driver.DeleteOp(c.path, driver.AnyVersion)}})
		}
	}
	return writes
}

// findPeer finds a node, or the place for it, in an element of Desk.peers. Two of those may have
// the same sequence number, if the name's znode was created again and its numbers began again.
func findPeer(peers []queue.Node, o queue.Node) (int, bool) {
	return slices.BinarySearchFunc(peers, o, func(a, b queue.Node) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.GUID.Serial, b.GUID.Serial))
	})
}

// addPeerLocked adds a contender with the listed node o to Desk.peers, if it is not there, and
// returns the peers from there on. The desk's mu is held.
func (d *Desk) addPeerLocked(c *ownNode, o queue.Node) []queue.Node {
	peers := d.peers[c.dir]
	i, found := findPeer(peers, o)
	if !found {
		o.Name = c.node() // not another copy of it
		peers = slices.Insert(peers, i, o)
		d.peers[c.dir] = peers
	}
	return peers[i:]
}

// removePeerLocked takes an unregistered contender out of Desk.peers, if it is there. The
// desk's mu is held.
func (d *Desk) removePeerLocked(c *ownNode) {
	peers, ok := d.peers[c.dir]
	if !ok {
		return
	}
	o, _, _ := d.cfg.Dialect.Parse(c.node())
	switch i, found := findPeer(peers, o); {
	case !found:
		return
	case i == 0: // as a rule: the first in the queue leaves first
		peers[0] = queue.Node{}
		peers = peers[1:]
	default:
		peers = slices.Delete(peers, i, i+1)
	}
	if d.peers[c.dir] = peers; len(peers) == 0 {
		delete(d.peers, c.dir)
	}
}

// awaitChange waits until one of the watched nodes ahead, or one of our own nodes,
// changes, and returns the watch that has fired, or until it is time to read them again: then none has. A watch that has fired
// proves nothing, except with gone: then the first of the nodes ahead was certainly deleted. With stands, our own nodes
// existed in the state without it. unwatched is how long the wait does without watches on our own nodes.
//
// A watch may not survive a new connection, so the caller then reads the nodes again.
// It does so after a pause, with jitter, of up to a sixth of the session timeout: many
// clients may have reconnected at the same time. Most watches do survive, and report at
// once what they have missed. So awaitChange listens to them during the pause: otherwise the
// whole queue would wait that long after every cut.
func (d *Desk) awaitChange(ctx context.Context, ahead, own []*session.Watched, unwatched time.Duration) (fired *session.Watched, gone, stands bool, err error) {
	all := append(slices.Clip(ahead), own...)
	armed := slices.MinFunc(all, func(a, b *session.Watched) int { return cmp.Compare(a.Gen, b.Gen) }).Gen
	for {
		_, moved := d.Session.State() // closed when there is another connection
		gen := d.Session.Generation()
		survived := gen > armed
		var look time.Duration
		switch {
		case survived:
			look, moved = d.cfg.Jitter(d.Session.Timeout()/6), nil
		case own == nil:
			look = unwatched
		}
		var late bool
		fired, late = awaitEvent(ctx, all, look, moved, d.Session.Context().Done())
		switch {
		case fired != nil:
			d.Session.DropWatch(fired)
			e := fired.Fires()
			sure := !survived && fired.Gen == d.Session.Generation() // an event of another connection proves nothing: the node is read again
			gone = sure && fired == ahead[0] && e.Err == nil && e.Type == driver.EventDeleted
			return fired, gone, gone && stand(own, fired.Gen), nil
		case ctx.Err() != nil || d.Session.Context().Err() != nil:
			return nil, false, false, d.waitError(ctx)
		case late:
			return nil, false, false, nil
		}
	}
}

// stand reports whether watches stand on our own nodes, on the connection of an event that was just received. Then
// the nodes exist in the state that the event has shown: an earlier deletion would have fired them before.
func stand(own []*session.Watched, gen uint64) bool {
	return len(own) > 0 && !slices.ContainsFunc(own, func(w *session.Watched) bool { return w.Gen != gen || w.Fires() != nil })
}

// awaitEvent returns the first of ws to fire. It returns nil if ctx, moved or ends ends first, or
// if the time look passes first: only then late is true. A look of 0 never passes.
func awaitEvent(ctx context.Context, ws []*session.Watched, look time.Duration, moved, ends <-chan struct{}) (fired *session.Watched, late bool) {
	var timer <-chan time.Time
	if look > 0 {
		t := time.NewTimer(look)
		defer t.Stop()
		timer = t.C
	}
	var events [3]<-chan driver.Event // a select of them takes much less memory than reflect's
	if len(ws) > len(events) {
		return awaitOneOf(ctx, ws, timer, moved, ends)
	}
	for i, w := range ws {
		events[i] = w.Event
	}
	select {
	case e, ok := <-events[0]:
		ws[0].Received(e, ok)
		return ws[0], false
	case e, ok := <-events[1]:
		ws[1].Received(e, ok)
		return ws[1], false
	case e, ok := <-events[2]:
		ws[2].Received(e, ok)
		return ws[2], false
	case <-timer:
		return nil, true
	case <-moved:
	case <-ends:
	case <-ctx.Done():
	}
	return nil, false
}

// awaitOneOf is awaitEvent for any number of watches.
func awaitOneOf(ctx context.Context, ws []*session.Watched, timer <-chan time.Time, moved, ends <-chan struct{}) (fired *session.Watched, late bool) {
	cases := make([]reflect.SelectCase, 0, len(ws)+4)
	for _, w := range ws {
		cases = append(cases, receive(w.Event))
	}
	i, value, ok := reflect.Select(append(cases, receive(timer), receive(moved), receive(ends), receive(ctx.Done())))
	if i >= len(ws) {
		return nil, i == len(ws)
	}
	e, _ := value.Interface().(driver.Event)
	ws[i].Received(e, ok)
	return ws[i], false
}

// receive returns the case of a select that receives from a channel.
func receive(ch any) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
}

// waitError returns the error of a wait for another holder that ctx or the session's
// end has ended.
func (d *Desk) waitError(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return errs.ErrSessionOver
	case d.Session.Silent():
		return d.Session.Outage(ctx)
	}
	return errs.WaitEnded(ctx, errs.ErrNotAcquired)
}
