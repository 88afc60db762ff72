package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
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
	all, err := p.UnderChecks(ops)
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
	results, err := p.Transact(ctx, kind, all, again)
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

// Downgrade turns a writer into a reader, without a gap: no writer gets in
// between, and the token stays the same. The handle is a reader's from then
// on, even if confirmation fails; others learn of it when the ensemble does, which goes
// on in the background if ctx ends first. There is no way back: two readers that
// wait to become writers would wait for each other.
//
// What the writer has under way in a Txn must not apply beside readers, so that is
// waited for first, at most until ctx ends or for a session timeout. If it is still
// under way then, or the outcome of any Txn under the lock is unknown, the lock
// stays a writer's and the error is ErrUnknownOutcome: verify what the Txn wrote,
// and release.
//
// A reader's Downgrade does nothing. It is ErrConflict for a semaphore's permit,
// for All, and for a lock that was joined with Reenter.
func (l *Lock) Downgrade(ctx context.Context) error {
	if err := l.downgrade(ctx); err != nil {
		return &Error{Op: "downgrade", Name: l.hold.name, Err: err}
	}
	return nil
}

func (l *Lock) downgrade(ctx context.Context) error {
	h := l.hold
	p := h.place
	s := p.Desk
	if err := l.Err(); err != nil {
		return err
	}
	for {
		what, err := l.lower()
		switch what {
		case txnUnderWay:
			h.awaitTxns(ctx)
			continue
		case holdOver:
			return l.endedError() // it asks the session: without its mutex
		case asItWas:
			return err
		}
		break
	}

	d := h.all.NodeData(h.origin, queue.Shared)
	done := make(chan error, 1)
	if !s.Spawn(func() { done <- p.Rewrite(d) }) {
		return l.endedError()
	}
	if h.turnstile != nil {
		h.turnstile.changed()
	}
	select {
	case err := <-done:
		switch {
		case errors.Is(err, driver.ErrNoNode):
			p.Lose()
			return l.endedError()
		case errors.Is(err, errs.ErrSessionOver):
			return l.endedError()
		}
		return p.Explain(err)
	case <-ctx.Done():
		return fmt.Errorf("%w to others, it goes on in the background: %w", errNotTold, context.Cause(ctx))
	}
}

// lowering is what lower has done.
type lowering int

const (
	asItWas     lowering = iota // nothing: there was nothing to do, or an error
	lowered                     // the writer is a reader
	txnUnderWay                 // nothing yet: a Txn has to end before
	holdOver                    // nothing: the hold is over
)

// lower makes a reader of a writer, in this process.
func (l *Lock) lower() (lowering, error) {
	h := l.hold
	p := h.place
	p.Desk.Mu.Lock()
	defer p.Desk.Mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
		return holdOver, nil
	case p.Size() > 1 || h.mode == queue.Permit || len(h.handles) > 1 && h.mode != queue.Shared:
		return asItWas, fmt.Errorf("%w: only a writer's lock on one name, with one handle, can be downgraded", errs.ErrConflict)
	case h.mode == queue.Shared:
		return asItWas, nil
	case p.InDoubt():
		return asItWas, fmt.Errorf("%w: a Txn under the lock may still be applied, which must not happen beside readers; the lock is a writer's still", ErrUnknownOutcome)
	case h.txns > 0:
		return txnUnderWay, nil
	}
	h.mode = queue.Shared
	h.token = Token{Zxid: p.Zxid, Turn: p.LowerLocked()}
	return lowered, nil
}

// errNotTold says that a downgrade is not known to the ensemble yet.
var errNotTold = errors.New("downgrade not confirmed")
