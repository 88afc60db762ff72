package memdriver

import (
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Operations that clients cannot request.
const (
	// opReap removes an empty container.
	opReap driver.OpKind = 255 - iota

	// opSequence sets a node's counter of creations to Version.
	opSequence

	// opACL replaces a node's access list by ACL.
	opACL
)

// txnKind is the kind of a transaction.
type txnKind uint8

const (
	// txnOps applies operations on znodes.
	txnOps txnKind = iota

	// txnError does nothing: it records a request that was refused before it reached
	// the tree. It gets a zxid and goes through the quorum like any other
	// transaction.
	txnError

	// txnCreateSession adds a session.
	txnCreateSession

	// txnCloseSession removes a session and its ephemerals.
	txnCloseSession

	// txnSync changes nothing and has no zxid. It marks the position of a sync's
	// answer in the stream of commits.
	txnSync
)

// txn is an entry of the log. The servers execute it one after the other, each
// on its own tree, with the same outcome.
type txn struct {
	kind    txnKind
	zxid    int64
	ms      int64 // the leader's clock, milliseconds since 1970
	session int64 // 0: the ensemble's operator, which may do everything
	ids     []identity
	timeout time.Duration // of a txnCreateSession
	multi   bool
	ops     []driver.Op
	results []driver.OpResult
	err     error
	failed  int // the index of the operation that failed, if err is the error of one

	// Where the answer goes, once origin has applied the transaction.
	origin  *server
	conn    *conn
	request *request
	acks    uint64 // one bit for each server that has it in its log
	syncs   []*txn // syncs to answer right after it

	changes []memcontrol.Change // its changes, if there is a journal
}

// permits reports whether the transaction's session has a permission.
func (tx *txn) permits(acl []driver.ACL, perm driver.Perm) bool {
	return tx.session == 0 || permits(acl, perm, tx.ids)
}
