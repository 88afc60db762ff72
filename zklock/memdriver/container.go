package memdriver

import (
	"maps"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
)

// reapable reports whether the server would remove the node: a container that
// has had a child and has none. One that was never used stays for ever, which
// is what keeps it alive between its creation and that of its first child.
func (n *node) reapable() bool {
	return n.owner == containerOwner && n.creations > 0 && len(n.children) == 0
}

// reap removes the empty containers, each in a transaction of its own, and
// plans the next round. Candidates come from what the leader has applied; that
// they are still empty is checked again when their turn in the log comes.
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

// planReap schedules the next round. A leader that had nobody to serve when it
// was due makes up for it as soon as it has.
func (l *leadership) planReap() {
	if l.reaping == nil {
		l.reaping = l.srv.e.after(l.reapAt.Sub(l.srv.e.clock.now), l.reap)
	}
}
