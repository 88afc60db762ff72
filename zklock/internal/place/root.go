package place

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// ensureRoot makes sure that the root exists, and creates it and its ancestors if
// create_root allows that. The root is persistent and never removed.
func ensureRoot(ctx context.Context, ds driver.Session, cfg *Settings) error {
	_, err := ds.Get(ctx, cfg.Root)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrNoAuth):
		return cfg.explainRights([]string{cfg.readRoot().missing()}, err)
	case !errors.Is(err, driver.ErrNoNode):
		return cfg.explain(err, cfg.Root)
	case !cfg.CreateRoot:
		return fmt.Errorf("%w: create %s, or remove create_root from the URL", errs.ErrRootMissing, cfg.Root)
	}
	var refused error // the error of the last ancestor, if this client may not create it
	for path, rest, more := "", cfg.Root[1:], true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		path += "/" + name
		_, err = ds.Create(ctx, path, nil, driver.Persistent, cfg.acls())
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
	on       string // path on which it is needed
	why      string // what locks need it for; begins with "to"
	optional bool   // locks work without it
}

// missing returns the text of an error that the right is missing.
func (r right) missing() string { return fmt.Sprintf("no %s on %s, needed %s", r.perm, r.on, r.why) }

// readRoot returns the right without which no session can be used.
func (c *Settings) readRoot() right {
	return right{op: driver.CheckOp(c.Root, driver.AnyVersion), perm: "READ", on: c.Root, why: "to find it, and for heartbeats"}
}

// rights returns the operations of a probe with an imaginary lock whose znode is at path.
func (c *Settings) rights(path string) []right {
	contender := path + "/probe"
	const imaginary = " (a znode that this client would create for a lock)"
	return []right{
		c.readRoot(),
		{op: driver.CreateOp(path, parentMark, driver.Persistent, c.acls()), perm: "CREATE", on: c.Root, why: "to create the znodes of locks"},
		{op: driver.CreateOp(contender, nil, driver.Ephemeral, c.acls()), perm: "CREATE", on: path + imaginary, why: "to queue"},
		{op: driver.SetOp(path, parentMark, driver.AnyVersion), perm: "WRITE", on: path + imaginary, why: "to queue in one round trip"},
		{op: driver.CheckOp(path, driver.AnyVersion), perm: "READ", on: path + imaginary, why: "to list the queue"},
		{op: driver.CheckOp(contender, driver.AnyVersion), perm: "READ", on: contender, why: "to wait for the one ahead"},
		{op: driver.DeleteOp(contender, driver.AnyVersion), perm: "DELETE", on: path + imaginary, why: "to release"},
		{op: driver.DeleteOp(path, driver.AnyVersion), perm: "DELETE", on: c.Root, why: "to remove idle znodes of locks before the servers do", optional: true},
	}
}
