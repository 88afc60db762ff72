package memdriver

import (
	"maps"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
)

// reapable reports whether the server would remove the node: a container that has had
// a child and has none now. A container that was never used stays for ever; this
// keeps it alive between its creation and that of its first child.
func (n *node) reapable() bool {
	return n.owner == containerOwner && n.creations > 0 && len(n.children) == 0
}

// reap removes the empty containers, each in a separate transaction, and schedules
// the next round. It takes the candidates from the state that the leader has applied.
// Whether they are still empty is checked again when their transactions are executed.
func (l *leadership) reap() {
	e := l.srv.e
	l.reaping = nil
	for _, n := range slices.SortedFunc(maps.Keys(l.srv.tree.containers), byPath) {
		if n.reapable() {
			op := driver.Op{Kind: opReap, Path: n.path, Version: driver.AnyVersion}
			l.propose(&txn{ops: []driver.Op{op}, results: make([]driver.OpResult, 1)})
		}
	}
	l.reapAt = e.clock.now.Add(e.config.reapInterval)
	l.planReap()
}

// planReap schedules the next round. If a round was due while the ensemble was idle,
// it runs as soon as the ensemble is used again.
func (l *leadership) planReap() {
	if l.reaping == nil {
		l.reaping = l.srv.e.after(l.reapAt.Sub(l.srv.e.clock.now), l.reap)
	}
}
