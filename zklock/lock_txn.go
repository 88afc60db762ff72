package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Txn applies ops as one transaction of the ensemble, only while the lock is
// held: it checks the lock's queue node first, in the same transaction, so that
// a holder that was paused and has lost the lock changes nothing. It fences data
// that lives in ZooKeeper itself, without tokens. Paths are absolute, from the
// ensemble's root and not the client's.
//
// results match ops. When an operation fails, nothing is applied, and the error
// matches its sentinel from package driver. If the lock is not held any more,
// the error is a *LostError or ErrReleased. ErrUnknownOutcome means that the
// connection was lost first: the transaction was applied, or was not, or will be
// while the lock's queue node is still there. It is never tried again.
//
// The Release of the last handle waits for the Txns under way, and Downgrade does.
// Readers may use it as well.
func (l *Lock) Txn(ctx context.Context, ops ...driver.Op) ([]driver.OpResult, error) {
	results, err := l.transact(ctx, "txn", ops, false)
	if err != nil {
		return nil, &Error{Op: "txn", Name: l.hold.name, Err: err}
	}
	return results, nil
}

// transact runs a transaction under checks of the lock's nodes. again says that
// it may be repeated when its outcome is unknown.
func (l *Lock) transact(ctx context.Context, kind string, ops []driver.Op, again bool) ([]driver.OpResult, error) {
	h := l.hold
	p := h.place
	txn, err := p.Txn(ops)
	if err != nil {
		return nil, err
	}
	if !h.beginTxn() {
		return nil, l.endedError()
	}
	defer h.endTxn()
	if err := l.Err(); err != nil {
		return nil, err
	}
	results, err := txn.Run(ctx, kind, again)
	switch {
	case errors.Is(err, errs.ErrNodeGone), errors.Is(err, errs.ErrSessionOver):
		return nil, l.endedError()
	case err == nil || again:
		return results, err
	case errors.Is(err, driver.ErrConnLoss):
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return nil, err
}

// endedError is Err of a handle that is known to have ended, or is about to.
func (l *Lock) endedError() error {
	if err := l.Err(); err != nil {
		return err
	}
	cause := l.hold.place.Desk.Cause() // it may be ending this handle just now
	if cause == nil {
		cause = errs.ErrSessionEnded
	}
	return &LostError{Name: l.hold.name, Cause: cause, At: time.Now()}
}

// beginTxn counts a Txn in; false: the hold is over.
func (h *hold) beginTxn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.txns++
	return true
}

func (h *hold) endTxn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.txns--; h.txns == 0 && h.settled != nil {
		close(h.settled)
		h.settled = nil
	}
}

// awaitTxns waits until no Txn of the hold is under way, until ctx ends or a
// session timeout has passed, and returns what is left of that. One that is still
// under way then could apply inside the next holder's critical section: the place
// is not passed on, but given up, and the check at its head keeps it from applying
// later.
func (h *hold) awaitTxns(ctx context.Context) (left time.Duration) {
	limit := h.place.Desk.Timeout
	h.mu.Lock()
	if h.txns == 0 {
		h.mu.Unlock()
		return limit
	}
	if h.settled == nil {
		h.settled = make(chan struct{})
	}
	settled := h.settled
	h.mu.Unlock()
	began := time.Now()
	if session.Sleep(ctx, limit, settled) {
		h.place.Doubt()
	} else {
		select {
		case <-settled:
		default:
			h.place.Doubt()
		}
	}
	return max(0, limit-time.Since(began))
}
