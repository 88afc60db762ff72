package place

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Txn is a transaction under checks of all of a place's nodes, which come first: it is
// applied only while all of them are there.
type Txn struct {
	p   *Place
	all []driver.Op
}

// Txn puts a check of each of the place's nodes before ops.
func (p *Place) Txn(ops []driver.Op) (Txn, error) {
	all := make([]driver.Op, 0, len(p.nodes)+len(ops))
	for _, c := range p.nodes {
		all = append(all, driver.CheckOp(c.path(), driver.AnyVersion))
	}
	for i := range ops {
		for _, c := range p.nodes {
			if ops[i].Path == c.path() {
				return Txn{}, fmt.Errorf("%w: an operation is about the lock's own queue node %s", errs.ErrConflict, ops[i].Path)
			}
		}
		all = append(all, ops[i])
	}
	return Txn{p, all}, nil
}

// Run runs the transaction and returns the results of what comes after the checks. again
// says that it may be repeated when its outcome is unknown; if not, that is remembered.
// errs.ErrNodeGone means that another client has deleted a node, and that the place is
// lost now.
func (t Txn) Run(ctx context.Context, kind string, again bool) ([]driver.OpResult, error) {
	p, all := t.p, t.all
	s, checks := p.Desk, len(p.nodes)
	var results []driver.OpResult
	op := func(ctx context.Context) (err error) {
		gen, sent := s.BeforeExchange()
		results, err = s.DS.Multi(ctx, all)
		if err == nil {
			s.Exchanged(gen, sent, true)
		}
		return err
	}
	var err error
	if again {
		err = s.Repeat(ctx, kind, op)
	} else {
		err = s.Once(ctx, kind, op)
	}
	switch {
	case err == nil:
		return results[checks:], nil
	case len(results) == len(all) && errors.Is(session.AtFault(results[:checks]), driver.ErrNoNode):
		p.Lose()
		return nil, errs.ErrNodeGone
	case errors.Is(err, errs.ErrSessionOver), s.Ended(err):
		return nil, errs.ErrSessionOver
	case again:
		return nil, p.Explain(err)
	case errors.Is(err, driver.ErrConnLoss):
		p.Doubt()
		return nil, err
	case errors.Is(err, driver.ErrNotSent):
		return nil, fmt.Errorf("%w: %w", errs.ErrUnavailable, err)
	case errors.Is(err, driver.ErrNoAuth):
		return nil, fmt.Errorf("%w %s: %w", errs.ErrNoAuth, s.cfg.identityHint(), err)
	}
	return nil, err
}

// Doubt notes that a transaction under the place may still be applied.
func (p *Place) Doubt() { p.doubtfulTxn.Store(true) }

// InDoubt reports whether a transaction under the place may still be applied.
func (p *Place) InDoubt() bool { return p.doubtfulTxn.Load() }

// Explain gives an error about the place's first node its meaning.
func (p *Place) Explain(err error) error { return p.Desk.cfg.explain(err, p.nodes[0].path()) }
