package place

import "github.com/zklock/go-zklock/zklock/internal/queue"

// Disowns is disowns, for tests with an ensemble in memory, which imports this package.
func (d *Desk) Disowns(o queue.Node) bool { return d.disowns(o) }
