package memdriver

import (
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Transaction is an entry of the ensemble's log that a majority has accepted:
// what really happened, whatever clients were told of it.
type Transaction struct {
	// Zxid is its number. Those that changed nothing, and so are not shown,
	// have numbers too.
	Zxid int64

	// At is when it was committed.
	At time.Time

	// Session is whose request it was; for the end of a session, which ended;
	// 0 for the ensemble's operator.
	Session int64

	// Ended says that the session ended, closed by its client or expired.
	Ended bool

	// Changes is what became of the znodes: what was created comes first.
	Changes []Change
}

// Change is what a transaction did to one znode.
type Change struct {
	// Kind is OpCreate, OpDelete or OpSet.
	Kind driver.OpKind

	// Path is the znode, with its sequence suffix.
	Path string

	// Data is its content afterwards; nothing for a deletion.
	Data []byte

	// Owner is the session that it ends with; 0 if with none.
	Owner int64
}

// WithJournal has every transaction told to f when it is committed, in the
// order of the log. The ensemble is locked while f runs: f must not block, and
// must not use the ensemble.
func WithJournal(f func(Transaction)) Option {
	return optionFunc(func(c *config) { c.journal = f })
}

// noteChanges keeps what a transaction has just done to a tree, for the journal.
// Deletions and new data are what watches look for; what was created is known
// by its result.
func (tx *txn) noteChanges(t *tree) {
	if tx.err != nil {
		return
	}
	for i := range tx.ops {
		if tx.ops[i].Kind != driver.OpCreate {
			continue
		}
		if n := t.find(tx.results[i].Path); n != nil { // else deleted again by a later operation
			tx.changes = append(tx.changes, Change{Kind: driver.OpCreate, Path: n.path, Data: cloneData(n.data), Owner: n.sessionOwner()})
		}
	}
	for _, ch := range t.changes {
		change := Change{Kind: driver.OpDelete, Path: ch.path}
		if n := t.find(ch.path); n != nil && ch.event == driver.EventChanged {
			change = Change{Kind: driver.OpSet, Path: n.path, Data: cloneData(n.data), Owner: n.sessionOwner()}
		}
		tx.changes = append(tx.changes, change)
	}
}

// sessionOwner is the session that the node ends with, or 0.
func (n *node) sessionOwner() int64 {
	if n.ephemeral() {
		return n.owner
	}
	return 0
}

// record tells the journal of a committed transaction. A leader that takes over
// commits again what the one before had committed and it had not heard of.
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
