package memdriver

import "github.com/zklock/go-zklock/zklock/driver"

// undo is the record for undoing one operation: the former state of the node, for a
// set, or of its parent, for the other operations.
type undo struct {
	kind         driver.OpKind
	node         *node
	creations    int32
	version      int32
	pzxid        int64
	mzxid, mtime int64
	data         []byte
}

// rollBack undoes the operations of a failed transaction, the newest first.
func (t *tree) rollBack() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		u := &t.undo[i]
		n := u.node
		switch u.kind {
		case driver.OpCreate:
			t.unindex(n)
			delete(n.parent.children, n.name())
			n.parent.creations, n.parent.pzxid = u.creations, u.pzxid
		case driver.OpDelete:
			n.parent.adopt(n)
			t.index(n)
			n.parent.pzxid = u.pzxid
		case driver.OpSet:
			n.data, n.version, n.mzxid, n.mtime = u.data, u.version, u.mzxid, u.mtime
		}
	}
	t.changes = t.changes[:0]
}
