package place

import (
	"context"
	"errors"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// recover finds out whether a creation whose reply was lost was applied. It lists after a
// Sync, which orders the list behind every request that the old connection may have sent:
// after a reconnect, servers refuse requests of the old connection. The nodes of a place
// were created by one transaction, so the first node decides for all of them; each of the
// others needs a list of its own queue, to learn the node's name.
func (p *Place) recover(ctx context.Context) (found bool, err error) {
	desk := p.Desk
	for i, c := range p.nodes {
		var q []queue.Node
		err = desk.Repeat(ctx, "recover", func(ctx context.Context, ds driver.Session) error {
			if err := ds.Sync(ctx, c.dir); err != nil {
				return err
			}
			q, _, err = Znode{desk, c.dir}.listOnce(ctx, ds)
			return err
		})
		if err != nil && !errors.Is(err, driver.ErrNoNode) { // no parent: no node
			return false, err
		}
		at := slices.IndexFunc(q, func(o queue.Node) bool { return o.GUID == c.guid }) // the first, if there are two
		if at < 0 && i > 0 {
			return true, errs.ErrNodeGone // it was created, as the first one was: another client has deleted it
		}
		if at < 0 {
			return false, nil
		}
		desk.mu.Lock()
		c.path = c.dir + "/" + q[at].Name
		desk.mu.Unlock()
	}
	return true, nil
}
