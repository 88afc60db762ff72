package place

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Roster has all contenders in the queue of a name: those of each family, in order.
type Roster [queue.Families][]Entry

// Entry is a contender in a queue, as a read of its node has shown it.
type Entry struct {
	queue.Node        // its Kind is the one as which the contender counts
	Data       []byte // of its node; nil if this client may not read it, which only happens if it is Foreign
	Session    int64  // the session that has created the node
	Zxid       int64  // the transaction that has created the node
	Created    int64  // when it was created, in milliseconds since the Unix epoch, by the clock of the servers
	Foreign    bool   // it is of another family than the client's dialect
	Stray      bool   // this client has made it, and no place of the client owns it: see Desk.disowns
}

// Empty reports whether no contender is in the queue.
func (q Roster) Empty() bool {
	return !slices.ContainsFunc(q[:], func(same []Entry) bool { return len(same) > 0 })
}

// Nodes returns what queue.Decide needs of entries.
func Nodes(entries []Entry) []queue.Node {
	nodes := make([]queue.Node, len(entries))
	for i := range entries {
		nodes[i] = entries[i].Node
	}
	return nodes
}

// Contenders returns all contenders in the queue of a name, as of a moment during the
// call. Contenders that leave before their data is read are left out.
func (z Znode) Contenders(ctx context.Context) (Roster, error) {
	names, err := z.children(ctx)
	if errors.Is(err, driver.ErrNoNode) {
		return Roster{}, nil
	}
	if err != nil {
		return Roster{}, z.Desk.cfg.explain(err, z.Path)
	}
	found, _, _ := z.sort(names)
	q, err := z.read(ctx, found, nil)
	return q, z.Desk.cfg.explain(err, z.Path)
}

// Sync waits until the session's server knows what the ensemble has committed.
func (z Znode) Sync(ctx context.Context) error {
	return z.Desk.cfg.explain(z.Desk.Session.Repeat(ctx, "list", func(ctx context.Context, ds driver.Session) error { return ds.Sync(ctx, z.Path) }), z.Path)
}

// children lists the znode's children for an operator.
func (z Znode) children(ctx context.Context) (names []string, err error) {
	if err := z.Desk.awaitRead(ctx); err != nil {
		return nil, err
	}
	defer func() { <-z.Desk.reads }()
	err = z.Desk.Session.Repeat(ctx, "list", func(ctx context.Context, ds driver.Session) (err error) {
		names, _, err = ds.Children(ctx, z.Path)
		return err
	})
	return names, err
}

// sort finds the contenders among the children of a lock's znode, and puts those of each
// family into the order of the queue. foreign is the dialect of a contender that does not wait
// for ours; nil if there is none. rest has the other children.
func (z Znode) sort(names []string) (found families, foreign *queue.Dialect, rest []string) {
	d := z.Desk.cfg.Dialect
	found[d.Family] = make([]queue.Node, 0, len(names))
	for _, name := range names {
		if c, other, ok := d.Parse(name); ok {
			found[d.Family] = append(found[d.Family], c)
		} else if other != nil {
			c, _, _ = other.Parse(name)
			foreign = other
			found[other.Family] = append(found[other.Family], c)
		} else {
			rest = append(rest, name)
		}
	}
	for _, same := range found {
		queue.Sort(same)
	}
	return found, foreign, rest
}

// families has the contenders of one znode, by family.
type families [queue.Families][]queue.Node

// maxReads is how many reads for operators a session has under way at the same time: enough that
// the round trips to the server add little, and so few that three quarters of session.MaxLone are
// left for calls that acquire on the session.
const maxReads = session.MaxLone / 4

// awaitRead waits for one of the maxReads turns. The caller receives from reads to give it back.
func (d *Desk) awaitRead(ctx context.Context) error {
	began := lease.Now()
	select {
	case d.reads <- struct{}{}:
		return nil
	case <-ctx.Done():
		return d.Session.WaitEnded(ctx, began)
	}
}

// read reads the nodes of all contenders, except those of known, which were read before. It
// stops at the first error, and returns when no read is under way.
func (z Znode) read(ctx context.Context, found families, known map[string]Entry) (q Roster, err error) {
	began := lease.Now()
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var readers sync.WaitGroup
	for family, same := range found {
		foreign := family != int(z.Desk.cfg.Dialect.Family)
		entries := make([]Entry, len(same))
		q[family] = entries
		for i, n := range same {
			if old, ok := known[n.Name]; ok {
				entries[i] = old
				continue
			}
			if z.Desk.awaitRead(reading) != nil {
				continue // as for all that follow
			}
			readers.Go(func() {
				defer func() { <-z.Desk.reads }()
				switch node, err := z.Desk.Session.Read(reading, "list", z.Path+"/"+n.Name); {
				case err == nil:
					entries[i] = entryOf(n, node, foreign)
				case errors.Is(err, driver.ErrNoAuth) && foreign:
					entries[i] = Entry{Node: n, Foreign: true}
				case !errors.Is(err, driver.ErrNoNode):
					stop(err)
				}
			})
		}
	}
	if readers.Wait(); ctx.Err() != nil {
		return Roster{}, z.Desk.Session.WaitEnded(ctx, began)
	}
	if reading.Err() != nil {
		return Roster{}, context.Cause(reading)
	}
	for family, entries := range q {
		q[family] = slices.DeleteFunc(entries, func(e Entry) bool { return e.Name == "" }) // they have left
	}
	z.markStrays(q[z.Desk.cfg.Dialect.Family])
	return q, nil
}

// markStrays marks the nodes that this client has made and no place of it owns, and has them deleted
// in the background.
func (z Znode) markStrays(entries []Entry) {
	for _, i := range z.Desk.straysIn(Nodes(entries)) {
		entries[i].Stray = true
		z.Desk.Session.Spawn(func() { _ = z.Desk.deleteNode(z.Path + "/" + entries[i].Name) })
	}
}

// entryOf returns the Entry of a contender whose node was read.
func entryOf(q queue.Node, n driver.Node, foreign bool) Entry {
	if !foreign && q.Kind.Mode.Lowers() { // else the data, which take as long to decode as a packet, decide nothing
		d, _ := queue.Decode(n.Data)
		q.Kind = queue.Effective(q.Kind, d)
	}
	return Entry{Node: q, Data: n.Data, Session: n.Stat.EphemeralOwner, Zxid: n.Stat.Czxid, Created: n.Stat.Ctime, Foreign: foreign}
}

// Delete deletes a contender's node, whichever client has created it. If zxid is not 0, this
// transaction must have created the node: else the error matches ErrNoNode.
func (z Znode) Delete(ctx context.Context, node string, zxid int64) error {
	path := z.Path + "/" + node
	return z.Desk.cfg.explain(z.Desk.Session.Repeat(ctx, "release", func(ctx context.Context, ds driver.Session) error {
		if zxid == 0 {
			return ds.Delete(ctx, path, driver.AnyVersion)
		}
		for {
			n, err := ds.Get(ctx, path)
			if err == nil {
				err = sameNode(n, zxid)
			}
			if err != nil {
				return err
			}
			if err = ds.Delete(ctx, path, n.Stat.Version); !errors.Is(err, driver.ErrBadVersion) {
				return err
			}
		}
	}), z.Path)
}

// Revoke asks the holder of a contender's node to give the lock back. zxid is as in Delete.
func (z Znode) Revoke(ctx context.Context, node string, zxid int64, reason string) error {
	err := z.Desk.rewrite(ctx, "mark", z.Path+"/"+node, func(n driver.Node) ([]byte, error) {
		if err := sameNode(n, zxid); err != nil {
			return nil, err
		}
		return queue.Revoke(node, n.Data, reason)
	})
	return z.Desk.cfg.explain(err, z.Path)
}

// sameNode returns nil if a node was created by the transaction zxid, or if zxid is 0; else an
// error that matches ErrNoNode.
func sameNode(n driver.Node, zxid int64) error {
	if zxid == 0 || n.Stat.Czxid == zxid {
		return nil
	}
	return fmt.Errorf("%w: the node with this name was created by the transaction %#x, and not by %#x: it is another contender", driver.ErrNoNode, n.Stat.Czxid, zxid)
}

// rewrite is Place.Amend for one node and any data. change returns the new data of the node
// that was read, or an error for the caller.
func (d *Desk) rewrite(ctx context.Context, kind, path string, change func(driver.Node) ([]byte, error)) error {
	return d.Session.Repeat(ctx, kind, func(ctx context.Context, ds driver.Session) error {
		for {
			n, err := ds.Get(ctx, path)
			if err != nil {
				return err
			}
			data, err := change(n)
			if err != nil || bytes.Equal(data, n.Data) {
				return err // nil: an earlier try of this call was applied, or there is nothing to change
			}
			if _, err = ds.Set(ctx, path, data, n.Stat.Version); !errors.Is(err, driver.ErrBadVersion) {
				return err
			}
		}
	})
}
