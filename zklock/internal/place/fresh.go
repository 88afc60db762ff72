package place

import (
	"errors"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A name is fresh for a client that does not know its znode. Then one transaction creates
// the znode, with our mark, and the contender below it, and sets the znode. If the znode
// exists, the transaction is refused, and the client reads the znode and goes on as for a
// known name. A client that tried to create only the znode first would send as many requests.
//
// The set gives the znode a version that a znode of another program in its place does not have:
// Desk.reap relies on that. A read before each removal would cost the servers more.
//
// Invariants:
//   - The client does not repeat a transaction with an unknown outcome. If it does not find the
//     contender, it makes the znodes with requests of their own. So the servers refuse a late twin
//     of the transaction as long as the znode exists; and a server that cuts connections because of
//     such transactions does so once for a name.
//   - A driver may refuse a whole group because of a container in it. So these transactions
//     share groups only after shareAfter of them in a row were applied on the session: then
//     most names are new. When one is refused, the others leave its group: see
//     session.Write.Risky.
//
// Any other error than an existing znode, or a missing root, turns these transactions off on the session.

// shareAfter is the number of fresh names in a row that let the next ones share a transaction
// with other writes.
const shareAfter = 8

// maxUnclear is how many unknown outcomes turn the transactions off if none was answered
// before: the server may be unable to answer them. One lost connection is one unknown outcome,
// however many transactions were submitted before it was noticed.
const maxUnclear = 2

// freshNames is what a session knows about transactions that create a znode and a contender.
type freshNames struct {
	off      atomic.Bool  // they do not work, or are not allowed
	answered atomic.Bool  // one of them had a definite outcome
	unclear  atomic.Int32 // unknown outcomes before that; see maxUnclear

	mu     mutex.Mutex[mutex.Inner]
	inARow int           // guarded by mu; how many were applied since the last one that was not
	shares chan struct{} // guarded by mu; closed while they may share groups
}

// usable reports whether the znode of a name of a dialect may be created together with the
// first contender: it must be a container, and there must be no znodes between it and the
// root.
func (f *freshNames) usable(d *queue.Dialect) bool {
	return !f.off.Load() && !d.Literal() && d.ParentMode() == driver.Container
}

// mayShare returns a channel that is closed once the next transaction may be part of a group.
func (f *freshNames) mayShare() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shares
}

// count counts a transaction that was applied, or one that was not.
func (f *freshNames) count(applied bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if applied {
		if f.inARow++; f.inARow == shareAfter {
			close(f.shares)
		}
		return
	}
	if f.inARow >= shareAfter {
		f.shares = make(chan struct{})
	}
	f.inARow = 0
}

// note records the outcome of a write, if it was to create znodes. unclear is the number of
// unknown outcomes when it was submitted.
func (f *freshNames) note(w *session.Write, unclear int32) {
	if !w.Risky {
		return
	}
	switch {
	case w.Err == nil:
		f.answered.Store(true)
		f.count(true)
		return
	case errors.Is(w.Err, driver.ErrConnLoss):
		if !f.answered.Load() && f.unclear.CompareAndSwap(unclear, unclear+1) && unclear+1 >= maxUnclear {
			f.off.Store(true)
		}
	case containerAtFault(w):
		f.answered.Store(true)
		if !errors.Is(w.Err, driver.ErrNodeExists) && !errors.Is(w.Err, driver.ErrNoNode) {
			f.off.Store(true)
		}
	case isRefused(w): // by the driver
		f.off.Store(true)
	}
	f.count(false)
}

// isRefused reports whether a write certainly failed because it was to create a znode.
func isRefused(w *session.Write) bool {
	byDriver := w.Results == nil && (errors.Is(w.Err, driver.ErrBadArguments) || errors.Is(w.Err, driver.ErrUnimplemented))
	return w.Risky && byDriver || containerAtFault(w)
}

// containerAtFault reports whether the create of a znode was the reason why a write was refused.
func containerAtFault(w *session.Write) bool {
	at := session.AtFault(w.Results)
	return at >= 0 && w.Ops[at].Mode == driver.Container
}
