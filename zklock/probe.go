package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// A probe asks the ensemble for every right that locks need, in one transaction
// which does to an imaginary lock what a life of it would do. The last of its
// operations is a check that cannot hold. So whatever the others come to, none
// is ever applied: nothing has to be cleaned up, nobody's watch fires, and what
// the answer says about each operation is all there is to it.
//
// ZooKeeper looks for READ on a znode at a check as at a read, for CREATE and
// DELETE on the parent, for WRITE on the znode itself.

// right is one operation of the probe and what it takes.
type right struct {
	op       driver.Op
	perm     string // ZooKeeper's name of the permission
	on       string // path on which it is needed
	why      string
	optional bool // there is a way round it
}

// missing says that it is missing.
func (r right) missing() string { return fmt.Sprintf("no %s on %s, %s", r.perm, r.on, r.why) }

// readRoot is the right without which there is not even a session.
func (c *config) readRoot() right {
	return right{op: driver.CheckOp(c.root, driver.AnyVersion), perm: "READ", on: c.root, why: "to look for it, and for heartbeats"}
}

// rights are the operations of a probe with an imaginary lock at path.
func (c *config) rights(path string) []right {
	contender := path + "/probe"
	const imaginary = " (a znode that this client would make for a lock)"
	return []right{
		c.readRoot(),
		{op: driver.CreateOp(path, parentMark, driver.Persistent, c.acls()), perm: "CREATE", on: c.root, why: "to make the znodes of locks"},
		{op: driver.CreateOp(contender, nil, driver.Ephemeral, c.acls()), perm: "CREATE", on: path + imaginary, why: "to queue"},
		{op: driver.SetOp(path, parentMark, driver.AnyVersion), perm: "WRITE", on: path + imaginary, why: "to queue in one round trip"},
		{op: driver.CheckOp(path, driver.AnyVersion), perm: "READ", on: path + imaginary, why: "to list the queue"},
		{op: driver.CheckOp(contender, driver.AnyVersion), perm: "READ", on: contender, why: "to wait for the one ahead"},
		{op: driver.DeleteOp(contender, driver.AnyVersion), perm: "DELETE", on: path + imaginary, why: "to release"},
		{op: driver.DeleteOp(path, driver.AnyVersion), perm: "DELETE", on: c.root, why: "to remove idle znodes of locks before the servers do", optional: true},
	}
}

// probe says which right is missing on which path, if one is.
func (s *session) probe(ctx context.Context) error {
	cfg := &s.cfg
	// No name is mapped to a "~" in the default dialect, and in the others
	// nobody has a lock of that name.
	path := fmt.Sprintf("%s/~probe-%016x", cfg.root, rand.Uint64())
	never := driver.CheckOp(path+"~never", driver.AnyVersion)
	rights := cfg.rights(path)
	var missing []string
	var cause error
	for {
		ops := make([]driver.Op, 0, len(rights)+1)
		for _, r := range rights {
			ops = append(ops, r.op)
		}
		var results []driver.OpResult
		err := s.repeat(ctx, "verify", func(ctx context.Context) (err error) {
			results, err = s.ds.Multi(ctx, append(ops, never))
			return err
		})
		i := slices.IndexFunc(results, func(r driver.OpResult) bool {
			return r.Err != nil && !errors.Is(r.Err, driver.ErrRolledBack)
		})
		switch {
		case len(results) != len(ops)+1 || i < 0:
			return cfg.explain(err, cfg.root)
		case i == len(ops) && missing == nil:
			return nil
		case i == len(ops):
			return cfg.explainRights(missing, cause)
		}
		err = results[i].Err
		refused := rights[i]
		rights = slices.Delete(rights, i, i+1)
		switch {
		case !errors.Is(err, driver.ErrNoAuth):
			return cfg.explain(err, refused.op.Path)
		case refused.optional:
			cfg.logger.Warn("zklock: a right is missing that this client can do without", "permission", refused.perm, "on", refused.on, "for", refused.why)
		default:
			missing = append(missing, refused.missing())
			cause = err
		}
		if refused.op.Kind == driver.OpCreate {
			// What was to be done with the node cannot be asked without it.
			rights = slices.DeleteFunc(rights, func(r right) bool {
				return r.op.Path == refused.op.Path || strings.HasPrefix(r.op.Path, refused.op.Path+"/")
			})
		}
	}
}

// explainRights is the error of rights that are missing.
func (c *config) explainRights(missing []string, cause error) error {
	return fmt.Errorf("%w %s: %s: %w", ErrNoAuth, c.identityHint(), strings.Join(missing, "; "), cause)
}

// identityHint says as whom a client comes that is refused.
func (c *config) identityHint() string {
	if c.user == "" {
		return "without a user in the URL"
	}
	return fmt.Sprintf("as user %q (or the password is wrong: ZooKeeper takes any, and compares it with access lists only)", c.user)
}
