package place

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Ledger is a znode in which package once has noted which slot of a name has run last.
type Ledger struct {
	Name, Path string
	Node       driver.Node
	Err        error // why this ledger cannot be read
}

// Ledgers reads the ledgers of all names that start with a prefix, in the byte order of the names. z is the root.
func (z Znode) Ledgers(ctx context.Context, prefix string) ([]Ledger, error) {
	children, err := z.children(ctx)
	if errors.Is(err, driver.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, z.Desk.cfg.explain(err, z.Path)
	}
	var all []Ledger
	for _, child := range children {
		if name, ok := queue.OfLedger(child); ok && strings.HasPrefix(name, prefix) {
			all = append(all, Ledger{Name: name, Path: z.Path + "/" + child})
		}
	}
	slices.SortFunc(all, func(a, b Ledger) int { return strings.Compare(a.Name, b.Name) })
	began := lease.Now()
	var readers sync.WaitGroup
	for i := range all {
		if z.Desk.awaitRead(ctx) != nil {
			break
		}
		readers.Go(func() {
			defer func() { <-z.Desk.reads }()
			l := &all[i]
			l.Node, l.Err = z.Desk.Session.Read(ctx, "list", l.Path)
			l.Err = z.Desk.cfg.explain(l.Err, l.Path)
		})
	}
	if readers.Wait(); ctx.Err() != nil {
		return nil, z.Desk.Session.WaitEnded(ctx, began)
	}
	for _, l := range all {
		if errors.Is(l.Err, errs.ErrSessionOver) || errors.Is(l.Err, errs.ErrUnavailable) {
			return nil, l.Err // it concerns all of them
		}
	}
	return slices.DeleteFunc(all, func(l Ledger) bool { return errors.Is(l.Err, driver.ErrNoNode) }), nil // an operator has removed them
}
