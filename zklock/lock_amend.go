package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Downgrade turns a writer's lock into a reader's. No writer can hold the lock in between,
// and the token stays the same. The lock cannot become a writer's again: two readers that
// wait to become writers would wait for each other.
//
// Downgrade first waits for Txns under way, because a Txn must not be applied while other
// readers hold the lock. It waits until ctx ends, at most for a session timeout. If a Txn
// is still under way then, or if the outcome of any Txn under the lock is unknown, the lock
// stays a writer's, and the error matches [ErrUnknownOutcome]. In that case check what the
// Txn wrote, and release the lock.
//
// Otherwise the lock becomes a reader's in this process, and stays one even if Downgrade
// returns an error. The client writes the change into the queue node, where other clients
// see it, and Downgrade waits for the ensemble's confirmation. If ctx ends first, the error
// matches its cause, and the write continues in the background.
//
// Downgrade does nothing for a reader's lock. It fails with [ErrConflict] for a
// semaphore's permit, for All of several names, and for a lock that several Locks hold
// because of [Reenter].
func (l *Lock) Downgrade(ctx context.Context) (err error) {
	h := l.hold
	defer annotate(&err, "downgrade", h.name)
	p := h.place
	s := p.Desk
	if err := l.Err(); err != nil {
		return err
	}
	lowered, err := l.lower()
	for ; err == errTxnUnderWay; lowered, err = l.lower() {
		h.awaitTxns(ctx)
	}
	switch {
	case err == ErrReleased:
		return l.endedError()
	case !lowered:
		return err
	}

	done, mode := make(chan error, 1), l.Mode().String()
	if !s.Spawn(func() { done <- p.Amend(s.Context(), func(d *queue.Data) { d.Mode = mode }) }) {
		return l.endedError()
	}
	if h.turnstile != nil {
		h.turnstile.serve(nil)
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
		return fmt.Errorf("downgrade not confirmed: the lock is a reader's here, and other clients see that later: %w", context.Cause(ctx))
	}
}

// errTxnUnderWay means that a Txn under way has to end before a downgrade.
var errTxnUnderWay = errors.New("a Txn is under way")

// lower turns a writer into a reader in this process; the ensemble does not know yet. It returns
// false if nothing was done: the hold is over (ErrReleased), a Txn has to end first, the lock was
// a reader's already, or it cannot be downgraded.
func (l *Lock) lower() (lowered bool, err error) {
	h := l.hold
	h.mu.Lock()
	lowered, err = h.mayLowerLocked()
	h.mu.Unlock()
	if !lowered {
		return false, err // a Downgrade that does nothing takes no turn
	}
	turn, ok := h.place.Advance(h)
	if !ok {
		return false, ErrReleased
	}
	if lowered, err = h.lower(turn); lowered && !h.place.Lower(h) {
		return false, ErrReleased
	}
	return lowered, err
}

// lower makes a writer's hold a reader's. Readers that join from then on have the turn, which the
// place has advanced before; if the hold stays as it is, that turn is not used. The place becomes a
// reader's after the hold: until then it could only go to a holder of this process.
func (h *hold) lower(turn uint32) (lowered bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lowered, err = h.mayLowerLocked(); lowered {
		h.mode, h.token = h.mode.Lowered(), Token{Zxid: h.place.Zxid, Turn: turn}
	}
	return lowered, err
}

// mayLowerLocked reports whether a hold is a writer's that can become a reader's. The error says why
// it cannot; it is nil for a reader's. mu is held.
func (h *hold) mayLowerLocked() (bool, error) {
	p := h.place
	switch {
	case h.over:
		return false, ErrReleased
	case p.Size() > 1 || h.mode.Lowered() == 0 || len(h.handles) > 1 && h.mode.Lowers():
		return false, fmt.Errorf("%w: only a writer's lock on one name, with one handle, can be downgraded", errs.ErrConflict)
	case !h.mode.Lowers():
		return false, nil
	case p.InDoubt():
		return false, fmt.Errorf("%w: a Txn under the lock may still be applied, so the lock stays a writer's: check what the Txn wrote, and release the lock", ErrUnknownOutcome)
	case h.txns > 0:
		return false, errTxnUnderWay
	}
	return true, nil
}

// SetLabel replaces the text that others read about the lock's holder, such as its address or
// "row 1200 of 9000". It is cut at 256 bytes. [Client.Contenders] returns it, and a
// [Client.Watch] reports it while the lock is held exclusively.
//
// The label belongs to the lock's place in ZooKeeper's queue. Readers of this process that
// share the place share the label. After a hand-over inside the process, which costs no
// request, others read the last label for a while: see [Contender].
//
// SetLabel costs a read and a write for each of the lock's names, and the next waiter in the queue
// reads the node again. It returns when the ensemble has confirmed the write. If ctx ends first,
// or connect_timeout passes, the error says so: others may read either label then, and no late
// write undoes a later SetLabel. If the lock has ended, the error matches [ErrLost] or
// [ErrReleased]. No other error affects the lock.
func (l *Lock) SetLabel(ctx context.Context, label string) (err error) {
	if l == nil || l.handle == nil {
		return &Error{Op: "label", Err: ErrReleased}
	}
	h := l.hold
	p := h.place
	defer annotate(&err, "label", h.name)
	if err := l.Err(); err != nil {
		return err
	}
	h.mu.Lock() // the hold has the label first: see place.Place.Amend
	h.origin.Label = queue.Truncate(label, queue.MaxLabel)
	h.mu.Unlock()
	err = p.Amend(ctx, func(d *queue.Data) { p.Relabel(d) })
	if errors.Is(err, driver.ErrNoNode) && l.Err() == nil {
		p.Lose()
	}
	switch {
	case l.Err() != nil, errors.Is(err, driver.ErrNoNode), errors.Is(err, errs.ErrSessionOver):
		return l.endedError() // also without an error: the label was not written, if the lock had ended by then
	case err != nil && ctx.Err() != nil, errors.Is(err, errs.ErrUnavailable):
		return fmt.Errorf("label not confirmed: other clients may read the old one or the new one: %w", whyEnded(ctx, err))
	}
	return p.Explain(err)
}
