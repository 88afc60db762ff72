package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

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

	d := h.all.places.NodeData(h.origin, queue.Shared)
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
