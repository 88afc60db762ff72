package place

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Read reads a znode of a held place, with all that the holders before have written. The reply that granted the place
// has shown their end, and no later reply is older: see driver.Session. An event binds no later server. So where an
// event granted the place, and its connection is gone, a commit has to show that end: a server may lag behind the
// event, and what a Sync waits for may be a leader that was replaced.
func (p *Place) Read(ctx context.Context, path string) (driver.Node, error) {
	n, err := p.Desk.Session.Read(ctx, "read", path)
	if heard := p.heard.Load(); heard == 0 || heard == p.Desk.Session.Generation() {
		return n, err
	}
	if _, err := p.Txn(ctx, "verify", nil, true); err != nil {
		return driver.Node{}, err
	}
	p.heard.Store(0)
	return p.Desk.Session.Read(ctx, "read", path)
}

// Txn runs a transaction of ops behind a check of each of the place's nodes, so it is applied only
// while all of them exist, and returns the results of ops. An operation on one of these nodes is
// refused with errs.ErrConflict. again means that the transaction may be repeated if its outcome is
// unknown. If it may not, Txn notes that the place is in doubt: see InDoubt. errs.ErrNodeGone means
// that another client has deleted a node; the place is lost then.
func (p *Place) Txn(ctx context.Context, kind string, ops []driver.Op, again bool) ([]driver.OpResult, error) {
	desk, checks := p.Desk, len(p.nodes)
	all := make([]driver.Op, 0, checks+len(ops))
	for _, c := range p.nodes {
		all = append(all, driver.CheckOp(c.path, driver.AnyVersion))
	}
	for i := range ops {
		if slices.ContainsFunc(p.nodes, func(c *ownNode) bool { return c.path == ops[i].Path }) {
			return nil, fmt.Errorf("%w: an operation is on the lock's own queue node %s, which only zklock may change", errs.ErrConflict, ops[i].Path)
		}
	}
	if err := desk.Session.Occupy(ctx, ops); err != nil {
		return nil, err
	}
	all = append(all, ops...)
	var results []driver.OpResult
	op := func(ctx context.Context, _ driver.Session) (err error) {
		results, err = desk.Session.Transact(ctx, all)
		return err
	}
	run := desk.Session.Once
	if again {
		run = desk.Session.Repeat
	}
	err := run(ctx, kind, op)
	if err == nil {
		desk.Session.Vacate(ops, results[checks:], nil)
	} else {
		desk.Session.Vacate(ops, nil, err)
	}
	at := session.AtFault(results)
	switch {
	case err == nil:
		return results[checks:], nil
	case len(results) == len(all) && at >= 0 && at < checks && errors.Is(results[at].Err, driver.ErrNoNode):
		p.Lose()
		return nil, errs.ErrNodeGone
	case errors.Is(err, errs.ErrSessionOver), desk.Session.Ended(err):
		return nil, errs.ErrSessionOver
	case again:
		return nil, p.Explain(err)
	case errors.Is(err, driver.ErrConnLoss):
		p.Doubt()
		return nil, err
	case errors.Is(err, driver.ErrNotSent):
		return nil, fmt.Errorf("%w: %w", errs.ErrUnavailable, err)
	case errors.Is(err, driver.ErrNoAuth):
		return nil, fmt.Errorf("%w %s: %w", errs.ErrNoAuth, desk.cfg.Identity, err)
	}
	return nil, err
}

// Doubt notes that a transaction under the place may still be applied.
func (p *Place) Doubt() { p.doubtfulTxn.Store(true) }

// InDoubt reports whether a transaction under the place may still be applied.
func (p *Place) InDoubt() bool { return p.doubtfulTxn.Load() }

// Explain translates a driver's error about the place's first node: see NodeSettings.explain.
func (p *Place) Explain(err error) error { return p.Desk.cfg.explain(err, p.nodes[0].path) }
