package place

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

// Ping reports whether a quorum answers, whether the root is there, and which right is
// missing on which path, if one is.
func (s *Desk) Ping(ctx context.Context) error {
	err := s.Repeat(ctx, "verify", func(ctx context.Context) error {
		gen, sent := s.BeforeExchange()
		_, err := s.DS.Multi(ctx, []driver.Op{driver.CheckOp(s.cfg.Root, driver.AnyVersion)})
		if err == nil {
			s.Exchanged(gen, sent, true)
		}
		return err
	})
	if err == nil || errors.Is(err, driver.ErrNoAuth) {
		return s.probe(ctx) // it says which right that is, and whether it is the only one
	}
	return s.cfg.explain(err, s.cfg.Root)
}

// probe says which right is missing on which path, if one is.
func (s *Desk) probe(ctx context.Context) error {
	cfg := s.cfg
	// No name is mapped to a "~" in the default dialect, and in the others
	// nobody has a lock of that name.
	path := fmt.Sprintf("%s/~probe-%016x", cfg.Root, rand.Uint64())
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
		err := s.Repeat(ctx, "verify", func(ctx context.Context) (err error) {
			results, err = s.DS.Multi(ctx, append(ops, never))
			return err
		})
		i := slices.IndexFunc(results, func(r driver.OpResult) bool {
			return r.Err != nil && !errors.Is(r.Err, driver.ErrRolledBack)
		})
		switch {
		case len(results) != len(ops)+1 || i < 0:
			return cfg.explain(err, cfg.Root)
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
			cfg.Logger.Warn("zklock: a right is missing that this client can do without", "permission", refused.perm, "on", refused.on, "for", refused.why)
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
