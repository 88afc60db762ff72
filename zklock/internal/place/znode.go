package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Znode is the znode of a lock, or an ancestor of one, with the session that accesses it.
type Znode struct {
	Desk *Desk
	Path string
}

// known returns what is known about a lock's znode, or that it is unmade: see freshNames. ok is false if a
// request has to show it. See parents.find for occupied.
func (z Znode) known(occupied bool) (p parent, ok bool) {
	p, fresh, found := z.Desk.parents.find(z.Path, occupied)
	if !found && !occupied && z.Desk.freshNames.usable(z.Desk.cfg.Dialect) {
		return parent{path: z.Path, marked: true, version: unmade}, true
	}
	return p, fresh
}

// ensure makes sure that a lock's znode exists, if it is not unmade.
//
// Another program may have replaced a znode that this client has not used for a while, so its
// data is read again before it is written.
func (z Znode) ensure(ctx context.Context, occupied bool) (parent, error) {
	if _, _, found := z.Desk.parents.find(z.Path, occupied); found {
		p, err := z.adopt(ctx)
		if !errors.Is(err, driver.ErrNoNode) {
			return p, err
		}
		z.Desk.parents.forget(z.Path)
	}
	if p, ok := z.known(occupied); ok {
		return p, nil
	}
	return z.make(ctx)
}

// make makes sure that a lock's znode exists, with a request of its own, and finds out
// whether it has our mark. It is created as a container, which servers remove once it has
// had children and is empty again. Servers before 3.5.1 have no containers: there it is
// persistent.
func (z Znode) make(ctx context.Context) (parent, error) {
	mode, err := z.create(ctx, parentMark)
	if errors.Is(err, driver.ErrNoNode) { // the root was removed
		err = z.Desk.Session.Repeat(ctx, "parent", func(ctx context.Context, ds driver.Session) error { return ensureRoot(ctx, ds, z.Desk.cfg) })
		if err == nil {
			mode, err = z.create(ctx, parentMark)
		}
	}
	if errors.Is(err, driver.ErrNodeExists) {
		return z.adopt(ctx)
	}
	if err != nil {
		return parent{}, z.Desk.cfg.explain(err, z.Path)
	}
	found := parent{path: z.Path, marked: true, createdHere: mode == driver.Container}
	z.Desk.parents.add(found)
	return found, nil
}

// adopt returns what a read shows about a lock's znode that another client has created. Where
// names are paths, the znode may have been made as an ancestor, without data: then it gets our
// mark, unless another client writes first, or this client may not write it.
func (z Znode) adopt(ctx context.Context) (parent, error) {
	found := parent{path: z.Path}
	err := z.Desk.rewrite(ctx, "parent", z.Path, func(n driver.Node) ([]byte, error) {
		data := n.Data
		if len(data) == 0 && z.Desk.cfg.Dialect.Literal() {
			data = parentMark
		}
		found.marked = isMark(data)
		return data, nil
	})
	if found.marked && errors.Is(err, driver.ErrNoAuth) {
		found.marked, err = false, nil
	}
	if err != nil {
		return parent{}, z.Desk.cfg.explain(err, z.Path)
	}
	z.Desk.parents.add(found)
	return found, nil
}

// create creates the znode, and returns the mode that it has got. If the name is a path, create
// also creates the znodes between the root and the znode. It refuses to create a lock below
// another lock where the dialect's recipe would take the znode of the lower one for a contender
// of the upper one.
func (z Znode) create(ctx context.Context, data []byte) (mode driver.Mode, err error) {
	cfg := z.Desk.cfg
	if slash := strings.LastIndexByte(z.Path, '/'); cfg.Dialect.Literal() && slash > len(cfg.Root) {
		above := Znode{z.Desk, z.Path[:slash]}
		_, err := above.create(ctx, nil)
		switch {
		case errors.Is(err, driver.ErrNodeExists), errors.Is(err, driver.ErrNoAuth):
			if err := above.refuseLock(ctx); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, err
		}
	}
	for _, mode = range []driver.Mode{cfg.Dialect.ParentMode(), driver.Persistent} {
		err = z.Desk.Session.Repeat(ctx, "parent", func(ctx context.Context, ds driver.Session) error {
			_, err := ds.Create(ctx, z.Path, data, mode, cfg.ACL)
			return err
		})
		if !errors.Is(err, driver.ErrUnimplemented) {
			break
		}
	}
	return mode, err
}

// refuseLock returns an error if the znode is that of a lock: no lock can be below it.
func (z Znode) refuseLock(ctx context.Context) error {
	if z.Desk.cfg.Dialect.Family == queue.FamilyKazoo {
		return nil
	}
	n, err := z.Desk.Session.Read(ctx, "parent", z.Path)
	switch {
	case errors.Is(err, driver.ErrNoAuth):
		return nil
	case err == nil && isMark(n.Data):
		return fmt.Errorf("%w: %s is a lock itself, and with dialect=%s its contenders would wait for the znode of a lock below it", errs.ErrConflict, z.Path, z.Desk.cfg.Dialect.Name)
	}
	return err
}

// addMade records that the transaction which has created a place's contenders has created the
// parents that were unmade, too. It has also set those that are marked, so that reap can
// distinguish them by their version from znodes that another program puts in their place.
func (d *Desk) addMade(parents []parent) {
	for i := range parents {
		if p := &parents[i]; isUnmade(*p) {
			p.version, p.createdHere = 1, p.marked
			d.parents.add(*p)
		}
	}
}

// adoptRefused is called when the servers have refused a write because of a znode that it was to create. If
// that znode exists, adoptRefused reads it, and the unmade znodes behind it: they may exist, too, and the
// servers would refuse the next write once for each. The znodes in front of it do not exist, or the server
// would have refused the write because of them. If the znode does not exist, such writes do not work, or
// the root is missing: then adoptRefused makes all znodes with requests of their own.
func (d *Desk) adoptRefused(ctx context.Context, w *session.Write, parents []parent) error {
	if d.freshNames.off.Load() || !errors.Is(w.Err, driver.ErrNodeExists) {
		return d.makeAll(ctx, parents)
	}
	path := w.Ops[session.AtFault(w.Results)].Path
	first := slices.IndexFunc(parents, func(p parent) bool { return p.path == path })
	for i := first; i < len(parents); i++ {
		if !isUnmade(parents[i]) {
			continue
		}
		found, err := Znode{d, parents[i].path}.adopt(ctx)
		if i > first && errors.Is(err, driver.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		parents[i] = found
	}
	return nil
}

// makeAll makes sure that the parents exist which are unmade.
func (d *Desk) makeAll(ctx context.Context, parents []parent) error {
	for i := range parents {
		if !isUnmade(parents[i]) {
			continue
		}
		var err error
		if parents[i], err = (Znode{d, parents[i].path}).make(ctx); err != nil {
			return err
		}
	}
	return nil
}

// deleteNode repeats the delete of a node until the node is gone. errs.ErrSessionOver means
// that the node goes with its session.
func (d *Desk) deleteNode(path string) error {
	err := d.Session.Repeat(d.Session.Context(), "release", func(ctx context.Context, ds driver.Session) error {
		return ds.Delete(ctx, path, driver.AnyVersion)
	})
	if errors.Is(err, driver.ErrNoNode) {
		return nil
	}
	return err
}

// Containers of names that were used once would accumulate: servers remove idle containers only
// once a minute, and at a limited rate. So a client removes those that it has created itself.
const (
	reapEvery = 5 * time.Second // how often a session looks for idle names
	reapBatch = 128             // names taken at the same time; each delete that is refused costs one more transaction
)

// reap removes idle containers that this client has created, and forgets those of other
// clients. Each session does that, until it ends: a container is removed by the first that looks.
//
// It does not remove a container that another client uses, has written to, or has put
// in the place of ours: servers refuse to delete a container that is not empty, or
// whose data has another version. A client that is about to use a removed container
// creates it again.
//
// The deletes are transactions of their own: a delete of a container that is in use is refused,
// and must not fail any other request. If a delete fails, the servers remove the container later.
func (d *Desk) reap() {
	for full := false; full || session.Sleep(d.Session.Context(), reapEvery, nil); {
		idle, more := d.parents.takeIdle(time.Now().Add(-reapIdle), reapBatch, d.inUse)
		full = more && d.Session.Context().Err() == nil
		var writes []*session.Write
		for _, p := range idle {
			if p.createdHere {
				writes = append(writes, &session.Write{Kind: "reap", Ctx: d.Session.Context(), Ops: []driver.Op{driver.DeleteOp(p.path, p.version)}, Done: make(chan struct{})})
			}
		}
		d.Session.SubmitApart(writes) // until soon after the end of the session, at the latest
	}
}
