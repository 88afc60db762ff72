package memdriver

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// treeSession is a session as the log records it. It is part of the replicated state,
// unlike the session's expiry, which only the leader knows.
type treeSession struct {
	timeout    time.Duration
	ephemerals map[*node]struct{}
}

// tree is one server's data, the result of the transactions up to zxid. Trees that
// have applied the same prefix of the log are equal: exec depends only on the tree
// and the transaction.
type tree struct {
	root       *node
	zxid       int64
	sessions   map[int64]*treeSession
	containers map[*node]struct{}
	changes    []change // changes by the newest transaction, for the server's watches
	undo       []undo   // records of the transaction under way
}

// change is a change that a watch may be waiting for.
type change struct {
	path  string
	event driver.EventType
}

// newTree makes the tree of an ensemble before the first write.
func newTree() *tree {
	t := &tree{
		root:       &node{path: "/", acl: openToAll},
		sessions:   make(map[int64]*treeSession),
		containers: make(map[*node]struct{}),
	}
	own := t.root.adopt(&node{path: "/zookeeper", acl: openToAll})
	own.adopt(&node{path: "/zookeeper/quota", acl: openToAll})
	own.adopt(&node{path: "/zookeeper/config", acl: driver.OpenACL(driver.PermRead), aversion: -1})
	return t
}

// find returns the node at a path, or nil. It finds nothing at an invalid path.
func (t *tree) find(path string) *node {
	if path == "" || path[0] != '/' || len(path) > 1 && path[len(path)-1] == '/' {
		return nil
	}
	n := t.root
	for rest := path[1:]; rest != ""; {
		segment := rest
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			segment, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		if n = n.children[segment]; n == nil {
			return nil
		}
	}
	return n
}

// clone returns an independent copy. It shares data and access lists, since they are
// never changed in place.
func (t *tree) clone() *tree {
	c := &tree{
		zxid:       t.zxid,
		sessions:   make(map[int64]*treeSession, len(t.sessions)),
		containers: make(map[*node]struct{}, len(t.containers)),
	}
	for id, s := range t.sessions {
		c.sessions[id] = &treeSession{timeout: s.timeout, ephemerals: make(map[*node]struct{}, len(s.ephemerals))}
	}
	c.root = c.copyOf(t.root, nil)
	return c
}

func (t *tree) copyOf(n, parent *node) *node {
	c := new(node)
	*c = *n
	c.parent = parent
	c.children = maps.Clone(n.children)
	for name, child := range c.children {
		c.children[name] = t.copyOf(child, c)
	}
	t.index(c)
	return c
}

// index adds a node to the tree's lists; unindex removes it.
func (t *tree) index(n *node) {
	switch {
	case n.owner == containerOwner:
		t.containers[n] = struct{}{}
	case n.owner != 0:
		if s := t.sessions[n.owner]; s != nil {
			if s.ephemerals == nil {
				s.ephemerals = make(map[*node]struct{})
			}
			s.ephemerals[n] = struct{}{}
		}
	}
}

func (t *tree) unindex(n *node) {
	switch {
	case n.owner == containerOwner:
		delete(t.containers, n)
	case n.owner != 0:
		if s := t.sessions[n.owner]; s != nil {
			delete(s.ephemerals, n)
		}
	}
}

// exec applies a transaction and sets its outcome. The checks come in the order of
// the server's PrepRequestProcessor, which decides the error if several are possible.
// A failed transaction uses a zxid and changes nothing else.
func (t *tree) exec(tx *txn) {
	t.begin(tx)
	if tx.kind != txnOps {
		return
	}
	t.undo = t.undo[:0]
	for i := range tx.ops {
		if err := t.execOp(tx, &tx.ops[i], &tx.results[i]); err != nil {
			tx.err, tx.failed = err, i
			t.rollBack()
			break
		}
		tx.results[i].Zxid = tx.zxid
	}
	clear(t.undo)
}

// replay applies a transaction, which exec has applied or failed on another tree, to
// this tree. It does not touch the outcome, which may belong to the caller by now.
func (t *tree) replay(tx *txn) {
	t.begin(tx)
	if tx.kind != txnOps || tx.err != nil {
		return
	}
	t.undo = t.undo[:0]
	for i := range tx.ops {
		var ignored driver.OpResult
		if err := t.execOp(tx, &tx.ops[i], &ignored); err != nil {
			panic("memdriver: servers of one ensemble disagree: " + err.Error())
		}
	}
	clear(t.undo)
}

// begin does what all kinds of transactions have in common. For those without operations that
// is all.
func (t *tree) begin(tx *txn) {
	t.zxid = tx.zxid
	t.changes = t.changes[:0]
	switch tx.kind {
	case txnCreateSession:
		t.sessions[tx.session] = &treeSession{timeout: tx.timeout}
	case txnCloseSession:
		t.closeSession(tx)
	}
}

func (t *tree) execOp(tx *txn, op *driver.Op, result *driver.OpResult) error {
	switch op.Kind {
	case driver.OpCreate:
		return t.create(tx, op, result)
	case driver.OpDelete, opReap:
		return t.delete(tx, op)
	case driver.OpSet:
		return t.set(tx, op, result)
	case driver.OpCheck:
		return t.check(tx, op)
	case opSequence:
		n := t.find(op.Path)
		if n == nil {
			return driver.ErrNoNode
		}
		n.creations = op.Version
		return nil
	case opACL:
		n := t.find(op.Path)
		if n == nil {
			return driver.ErrNoNode
		}
		n.acl = op.ACL
		return nil
	}
	return driver.ErrBadArguments
}

// closeSession ends a session and removes its ephemerals, all at one zxid.
func (t *tree) closeSession(tx *txn) {
	s := t.sessions[tx.session]
	if s == nil {
		return
	}
	// Remove them in an order that does not depend on the map, so that runs can be
	// repeated.
	for _, n := range slices.SortedFunc(maps.Keys(s.ephemerals), byPath) {
		t.remove(n, tx.zxid)
	}
	delete(t.sessions, tx.session)
}
