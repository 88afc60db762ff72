package memdriver

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Operations that no client can ask for.
const (
	// opReap removes an empty container.
	opReap driver.OpKind = 255 - iota

	// opSequence sets a node's counter of creations to Version.
	opSequence
)

// txnKind says what a transaction does.
type txnKind uint8

const (
	// txnOps applies operations on znodes.
	txnOps txnKind = iota

	// txnError does nothing: the record of a request refused before it got to
	// the tree. It takes a zxid and goes through the quorum like any other.
	txnError

	// txnCreateSession enters a session.
	txnCreateSession

	// txnCloseSession removes a session and its ephemerals.
	txnCloseSession

	// txnSync changes nothing and has no zxid. It takes the place of the
	// answer to a sync in the stream of commits.
	txnSync
)

// txn is an entry of the log. The servers execute it one after the other, each
// on its own tree, with the same outcome.
type txn struct {
	kind    txnKind
	zxid    int64
	ms      int64 // the leader's clock, milliseconds since 1970
	session int64 // 0: the ensemble's operator, who may do everything
	ids     []identity
	timeout time.Duration // of a txnCreateSession
	multi   bool
	ops     []driver.Op
	results []driver.OpResult
	err     error
	failed  int // the operation at fault, if err is set by one

	// Whom to answer, once origin has applied it.
	origin  *server
	conn    *conn
	request *request
	acks    uint64 // servers that have it in their log, a bit each
	syncs   []*txn // to be answered right behind it

	changes []Change // what it did, if there is a journal
}

// permits reports whether the transaction's session has a permission.
func (tx *txn) permits(acl []driver.ACL, perm driver.Perm) bool {
	return tx.session == 0 || permits(acl, perm, tx.ids)
}
