package place

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Disowns is disowns, for tests with an ensemble in memory, which imports this package.
func (d *Desk) Disowns(o queue.Node) bool { return d.disowns(o) }

// List is list.
func (z Znode) List(ctx context.Context) ([]queue.Node, error) { return z.list(ctx) }

// Lists returns the number of queues of which a list is under way, or is remembered to be.
func (d *Desk) Lists() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.lists)
}
