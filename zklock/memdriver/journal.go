package memdriver

import (
	"slices"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

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
			tx.changes = append(tx.changes, memcontrol.Change{Kind: driver.OpCreate, Path: n.path, Data: cloneData(n.data), Owner: n.sessionOwner()})
		}
	}
	for _, ch := range t.changes {
		if ch.event != driver.EventDeleted && ch.event != driver.EventChanged {
			continue
		}
		change := memcontrol.Change{Kind: driver.OpDelete, Path: ch.path}
		if n := t.find(ch.path); n != nil && ch.event == driver.EventChanged {
			change = memcontrol.Change{Kind: driver.OpSet, Path: n.path, Data: cloneData(n.data), Owner: n.sessionOwner()}
		}
		tx.changes = append(tx.changes, change)
	}
}

// sessionOwner returns the session of an ephemeral node, or 0.
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
	e.config.journal(memcontrol.Transaction{
		Zxid: tx.zxid, At: e.clock.now, Session: tx.session, Ended: ended, Changes: slices.Clip(tx.changes),
	})
}
