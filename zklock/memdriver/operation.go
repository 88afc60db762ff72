package memdriver

import (
	"bytes"
	"math"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

func (t *tree) create(tx *txn, op *driver.Op, result *driver.OpResult) error {
	if nameless(op.Path) || op.Mode > driver.Container {
		return driver.ErrBadArguments
	}
	acl, err := fixACL(op.ACL, tx.ids)
	if err != nil {
		return err
	}
	parentPath, _ := splitPath(op.Path)
	parent := t.find(parentPath)
	if parent == nil {
		return driver.ErrNoNode
	}
	if !tx.permits(parent.acl, driver.PermCreate) {
		return driver.ErrNoAuth
	}
	path := op.Path
	if op.Mode.Sequential() {
		path = withSuffix(path, parent.creations)
	} else {
		path = strings.Clone(path)
	}
	if !validPath(path) {
		return driver.ErrBadArguments
	}
	_, name := splitPath(path)
	if name == "" || parent.children[name] != nil {
		return driver.ErrNodeExists
	}
	if parent.ephemeral() {
		return driver.ErrNoChildrenForEphemerals
	}
	n := &node{
		path: path, data: cloneData(op.Data), acl: acl,
		czxid: tx.zxid, mzxid: tx.zxid, pzxid: tx.zxid, ctime: tx.ms, mtime: tx.ms,
	}
	switch {
	case op.Mode == driver.Container:
		n.owner = containerOwner
	case op.Mode.Ephemeral():
		n.owner = tx.session
	}
	if tx.multi {
		t.undo = append(t.undo, undo{kind: driver.OpCreate, node: n, creations: parent.creations, pzxid: parent.pzxid})
	}
	// The counter stays at its maximum, as in servers since 3.6: they only ever raise
	// it, and its successor is negative. Pzxid is raised together with it.
	if parent.creations < math.MaxInt32 {
		parent.creations++
		parent.pzxid = tx.zxid
	}
	parent.adopt(n)
	t.index(n)
	t.changes = append(t.changes, change{path, driver.EventCreated}, change{parent.path, driver.EventChildren})
	result.Path = path
	return nil
}

// withSuffix appends a sequence number, padded to ten digits.
func withSuffix(path string, number int32) string {
	var digits [10]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + number%10)
		number /= 10
	}
	return path + string(digits[:])
}

func (t *tree) delete(tx *txn, op *driver.Op) error {
	// The server checks no more than this: no node with an invalid name can exist.
	if nameless(op.Path) || reserved(op.Path) {
		return driver.ErrBadArguments
	}
	parentPath, name := splitPath(op.Path)
	parent := t.find(parentPath)
	if parent == nil {
		return driver.ErrNoNode
	}
	if !tx.permits(parent.acl, driver.PermDelete) {
		return driver.ErrNoAuth
	}
	n := parent.children[name]
	if n == nil {
		return driver.ErrNoNode
	}
	if op.Version != driver.AnyVersion && op.Version != n.version {
		return driver.ErrBadVersion
	}
	if len(n.children) > 0 {
		return driver.ErrNotEmpty
	}
	// Checked again in the order of the log: a child may have been created and
	// deleted, or a client may have put another kind of node there.
	if op.Kind == opReap && !n.reapable() {
		return driver.ErrBadVersion
	}
	if tx.multi {
		t.undo = append(t.undo, undo{kind: driver.OpDelete, node: n, pzxid: parent.pzxid})
	}
	t.remove(n, tx.zxid)
	return nil
}

// nameless reports whether a server cannot split a path into a parent and a name.
func nameless(path string) bool {
	return strings.IndexByte(path, '/') < 0 || strings.IndexByte(path, 0) >= 0
}

// reserved reports whether a path is one that no client may delete.
func reserved(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}

// remove removes a node without children from the tree.
func (t *tree) remove(n *node, zxid int64) {
	delete(n.parent.children, n.name())
	n.parent.pzxid = max(n.parent.pzxid, zxid)
	t.unindex(n)
	t.changes = append(t.changes, change{n.path, driver.EventDeleted}, change{n.parent.path, driver.EventChildren})
}

func (t *tree) set(tx *txn, op *driver.Op, result *driver.OpResult) error {
	if !validPath(op.Path) {
		return driver.ErrBadArguments
	}
	n := t.find(op.Path)
	if n == nil {
		return driver.ErrNoNode
	}
	if !tx.permits(n.acl, driver.PermWrite) {
		return driver.ErrNoAuth
	}
	if op.Version != driver.AnyVersion && op.Version != n.version {
		return driver.ErrBadVersion
	}
	if tx.multi {
		t.undo = append(t.undo, undo{kind: driver.OpSet, node: n, version: n.version, mzxid: n.mzxid, mtime: n.mtime, data: n.data})
	}
	// The data is often the same again: then keep the old copy.
	if !bytes.Equal(n.data, op.Data) || n.data == nil {
		n.data = cloneData(op.Data)
	}
	n.version++
	n.mzxid, n.mtime = tx.zxid, tx.ms
	t.changes = append(t.changes, change{n.path, driver.EventChanged})
	result.Stat = n.stat()
	return nil
}

func (t *tree) check(tx *txn, op *driver.Op) error {
	if !validPath(op.Path) {
		return driver.ErrBadArguments
	}
	n := t.find(op.Path)
	if n == nil {
		return driver.ErrNoNode
	}
	if !tx.permits(n.acl, driver.PermRead) {
		return driver.ErrNoAuth
	}
	if op.Version != driver.AnyVersion && op.Version != n.version {
		return driver.ErrBadVersion
	}
	return nil
}

// cloneData copies a node's content. No content becomes empty content.
func cloneData(data []byte) []byte { return append([]byte{}, data...) }
