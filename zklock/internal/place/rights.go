package place

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// findRoot looks for the root when a session is opened. A missing one is made before the first place, if create_root
// allows that: an operator's question writes nothing.
func (s *Shared) findRoot(ctx context.Context, ds driver.Session) error {
	cfg := s.cfg
	_, err := ds.Get(ctx, cfg.Root)
	switch {
	case err == nil:
		s.hadRoot.Store(true)
		return nil
	case errors.Is(err, driver.ErrNoAuth):
		return cfg.explainRights([]string{cfg.readRoot().missing()}, err)
	case !errors.Is(err, driver.ErrNoNode):
		return cfg.explain(err, cfg.Root)
	}
	if s.hadRoot.Load() {
		// The ensemble was set up again, perhaps. The client's first write shows whether it has lost transactions,
		// and needs the root.
		return ensureRoot(ctx, ds, cfg)
	}
	s.rootMissing.Store(true)
	return cfg.mayCreateRoot()
}

// mayCreateRoot returns an error if create_root does not allow to create the root.
func (c *NodeSettings) mayCreateRoot() error {
	if !c.CreateRoot {
		return fmt.Errorf("%w: create %s, or remove create_root from the URL", errs.ErrRootMissing, c.Root)
	}
	return nil
}

// rooting is the making of the root. It goes on when a caller that waits for it leaves: each of a load that gives up has
// less time than it takes.
type rooting struct {
	done chan struct{}
	err  error // set before done is closed
}

// needRoot makes the root if it was missing when a session was opened.
func (d *Desk) needRoot(ctx context.Context) error {
	if !d.rootMissing.Load() {
		return nil
	}
	d.mu.Lock()
	r := d.root
	begins := r == nil
	if begins {
		r = &rooting{done: make(chan struct{})}
		d.root = r
	}
	d.mu.Unlock()
	if begins {
		d.Session.Spawn(func() { d.makeRoot(r) }) // if the session is over, Await says so
	}
	if err := d.Session.Await(ctx, r.done); err != nil {
		return err
	}
	return r.err
}

// makeRoot makes the root for all that wait for it.
func (d *Desk) makeRoot(r *rooting) {
	r.err = d.Session.Repeat(d.Session.Context(), "parent", func(ctx context.Context, ds driver.Session) error { return ensureRoot(ctx, ds, d.cfg) })
	if r.err == nil {
		d.rootMissing.Store(false)
		d.hadRoot.Store(true)
	}
	d.mu.Lock()
	d.root = nil
	d.mu.Unlock()
	close(r.done)
}

// ensureRoot makes sure that the root exists, after it was found missing: it creates it and its ancestors if
// create_root allows that. The root is persistent and never removed.
func ensureRoot(ctx context.Context, ds driver.Session, cfg *NodeSettings) error {
	err := cfg.mayCreateRoot()
	if err != nil {
		return err
	}
	var refused error // the error of the last ancestor, if this client may not create it
	for path, rest, more := "", cfg.Root[1:], true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		path += "/" + name
		_, err = ds.Create(ctx, path, nil, driver.Persistent, cfg.ACL)
		switch {
		case err == nil || errors.Is(err, driver.ErrNodeExists):
			refused = nil
		case errors.Is(err, driver.ErrNoAuth):
			// It may exist nevertheless: the create of the znode below it will show that.
			above := right{perm: "CREATE", on: path[:max(1, strings.LastIndexByte(path, '/'))], why: "to create " + path}
			if refused = cfg.explainRights([]string{above.missing()}, err); path == cfg.Root {
				return refused
			}
		case errors.Is(err, driver.ErrNoNode) && refused != nil:
			return refused
		default:
			return cfg.explain(err, path)
		}
	}
	return nil
}

// right is one operation of the probe, and the right that it needs.
type right struct {
	op       driver.Op
	perm     string // ZooKeeper's name of the permission
	on       string // the path that it is needed on
	why      string // what locks need it for; begins with "to"
	optional bool   // locks work without it
}

// missing returns the text of an error that the right is missing.
func (r right) missing() string { return fmt.Sprintf("no %s on %s, needed %s", r.perm, r.on, r.why) }

// readRoot returns the right that every session needs.
func (c *NodeSettings) readRoot() right {
	return right{op: driver.CheckOp(c.Root, driver.AnyVersion), perm: "READ", on: c.Root, why: "to find it, and for heartbeats"}
}

// rights returns the operations of a probe with an imaginary lock whose znode is at path.
func (c *NodeSettings) rights(path string) []right {
	contender := path + "/probe"
	const imaginary = " (a znode that this client would create for a lock)"
	return []right{
		c.readRoot(),
		{op: driver.CreateOp(path, parentMark, driver.Persistent, c.ACL), perm: "CREATE", on: c.Root, why: "to create the znodes of locks"},
		{op: driver.CreateOp(contender, nil, driver.Ephemeral, c.ACL), perm: "CREATE", on: path + imaginary, why: "to queue"},
		{op: driver.SetOp(path, parentMark, driver.AnyVersion), perm: "WRITE", on: path + imaginary, why: "to queue in one round trip"},
		{op: driver.CheckOp(path, driver.AnyVersion), perm: "READ", on: path + imaginary, why: "to list the queue"},
		{op: driver.CheckOp(contender, driver.AnyVersion), perm: "READ", on: contender, why: "to wait for the one ahead"},
		{op: driver.DeleteOp(contender, driver.AnyVersion), perm: "DELETE", on: path + imaginary, why: "to release"},
		{op: driver.DeleteOp(path, driver.AnyVersion), perm: "DELETE", on: c.Root, why: "to remove idle znodes of locks before the servers do", optional: true},
	}
}

// Ping checks that a quorum answers, that the root exists, and that this client has
// every right that locks need. If rights are missing, its error names each and its path, and
// matches errs.ErrNoAuth. What the client can do without is only logged: a right, or container
// znodes.
//
// It sends one transaction with all the operations that an imaginary lock would need from its
// creation to its removal. The last operation is a check that always fails, so none of the
// operations is ever applied. The reply, which also needs a quorum, has a result for each operation.
//
// ZooKeeper requires READ on a znode for a check, as for a read. It requires CREATE and
// DELETE on the parent, and WRITE on the znode itself.
func (d *Desk) Ping(ctx context.Context) error {
	if err := d.needRoot(ctx); err != nil {
		return err
	}
	cfg := d.cfg
	// In the default dialect the znode of no name has a "~" in its own name. In the other
	// dialects no lock is expected to have this random name.
	path := fmt.Sprintf("%s/~probe-%016x", cfg.Root, rand.Uint64())
	rights := cfg.rights(path)
	var missing []string
	var cause error
	for {
		var ops []driver.Op
		for _, r := range rights {
			ops = append(ops, r.op)
		}
		ops = append(ops, driver.CheckOp(path+"~never", driver.AnyVersion))
		var results []driver.OpResult
		err := d.Session.Repeat(ctx, "verify", func(ctx context.Context, ds driver.Session) (err error) {
			results, err = ds.Multi(ctx, ops)
			return err
		})
		i := session.AtFault(results)
		switch {
		case len(results) != len(ops) || i < 0:
			return cfg.explain(err, cfg.Root)
		case i == len(rights) && missing == nil:
			d.lookForContainers(ctx, path)
			return nil
		case i == len(rights):
			return cfg.explainRights(missing, cause)
		}
		err = results[i].Err
		refused := rights[i]
		rights = slices.Delete(rights, i, i+1)
		switch {
		case !errors.Is(err, driver.ErrNoAuth):
			return cfg.explain(err, refused.op.Path)
		case refused.optional:
			cfg.Log().Warn("zklock: a right is missing that this client can do without", "permission", refused.perm, "on", refused.on, "for", refused.why)
		default:
			missing = append(missing, refused.missing())
			cause = err
		}
		if refused.op.Kind == driver.OpCreate {
			// The other operations on this node cannot be tried without its create.
			rights = slices.DeleteFunc(rights, func(r right) bool {
				return r.op.Path == refused.op.Path || strings.HasPrefix(r.op.Path, refused.op.Path+"/")
			})
		}
	}
}

// lookForContainers logs a warning if the servers do not know container znodes. It asks for one
// below a znode that does not exist: servers that know containers answer driver.ErrNoNode, and
// any other error leaves the question open.
func (d *Desk) lookForContainers(ctx context.Context, path string) {
	if d.cfg.Dialect.ParentMode() != driver.Container {
		return
	}
	err := d.Session.Repeat(ctx, "verify", func(ctx context.Context, ds driver.Session) error {
		_, err := ds.Create(ctx, path+"~never/container", nil, driver.Container, d.cfg.ACL)
		return err
	})
	if errors.Is(err, driver.ErrUnimplemented) {
		d.cfg.Log().Warn("zklock: the servers lack container znodes, which ZooKeeper has since 3.5.1: the znodes of names stay until an operator removes them")
	}
}
