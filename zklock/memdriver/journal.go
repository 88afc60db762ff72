package memdriver

import (
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Transaction is an entry of the ensemble's log that a majority has accepted. It
// shows what really happened, whatever replies the clients received.
type Transaction struct {
	// Zxid is its number. Transactions that changed nothing have numbers too, but are
	// not reported.
	Zxid int64

	// At is when it was committed.
	At time.Time

	// Session is the session whose request it was; for the end of a session, the
	// session that ended. It is 0 for the ensemble's operator.
	Session int64

	// Ended means that the session ended: its client closed it, or it expired.
	Ended bool

	// Changes lists the changes to znodes; creations come first.
	Changes []Change
}

// Change is a transaction's change to one znode.
type Change struct {
	// Kind is OpCreate, OpDelete or OpSet.
	Kind driver.OpKind

	// Path is the znode's path, with its sequence suffix.
	Path string

	// Data is its content afterwards; empty for a deletion.
	Data []byte

	// Owner is the session with which the znode ends; 0 if it is not ephemeral.
	Owner int64
}

// WithJournal sets a function that is called with every transaction that changes
// something, when it is committed and in the order of the log. The ensemble is locked
// while f runs, so f must not block and must not use the ensemble.
func WithJournal(f func(Transaction)) Option {
	return optionFunc(func(c *config) { c.journal = f })
}

// noteChanges records, for the journal, what a transaction has just done to a tree.
// Deletions and new data are in the changes that are kept for watches; creations are
// in the transaction's results.
func (tx *txn) noteChanges(t *tree) {
	if tx.err != nil {
		return
	}
	for i := range tx.ops {
		if tx.ops[i].Kind != driver.OpCreate {
			continue
		}
		if n := t.find(tx.results[i].Path); n != nil { // nil: deleted again by a later operation
			tx.changes = append(tx.changes, Change{Kind: driver.OpCreate, Path: n.path, Data: cloneData(n.data), Owner: n.sessionOwner()})
		}
	}
	for _, ch := range t.changes {
		if ch.event != driver.EventDeleted && ch.event != driver.EventChanged {
			continue
		}
		change := Change{Kind: driver.OpDelete, Path: ch.path}
		if n := t.find(ch.path); n != nil && ch.event == driver.EventChanged {
			change = Change{Kind: driver.OpSet, Path: n.path, Data: cloneData(n.data), Owner: n.sessionOwner()}
		}
		tx.changes = append(tx.changes, change)
	}
}

// sessionOwner returns the session with which the node ends, or 0.
func (n *node) sessionOwner() int64 {
	if n.ephemeral() {
		return n.owner
	}
	return 0
}

// record passes a committed transaction to the journal. A new leader commits again
// those transactions that its predecessor had committed without its knowledge; they
// are recorded once.
func (e *Ensemble) record(tx *txn) {
	if e.config.journal == nil || tx.zxid <= e.recorded {
		return
	}
	e.recorded = tx.zxid
	ended := tx.kind == txnCloseSession && tx.err == nil
	if !ended && len(tx.changes) == 0 {
		return
	}
	e.config.journal(Transaction{
		Zxid: tx.zxid, At: e.clock.now, Session: tx.session, Ended: ended, Changes: slices.Clip(tx.changes),
	})
}
