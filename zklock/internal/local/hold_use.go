package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// What a holder does with its hold. ErrReleased means here that the hold, or the handle, has ended: by
// a release or by a loss.

// Wants returns the names of the hold, sorted, as they were wanted. It is not changed.
func (h *Hold) Wants() []place.Want { return h.wants }

// SessionID returns the id of the session that the place belongs to.
func (h *Hold) SessionID() int64 { return h.place.Desk.Session.ID() }

// SessionTimeout returns the timeout of that session.
func (h *Hold) SessionTimeout() time.Duration { return h.place.Desk.Session.Timeout() }

// MinLease returns how much of the lease is left at least while heartbeats are answered.
func (h *Hold) MinLease() time.Duration { return h.place.Desk.Session.LeastKept() }

// Alive reports whether the session's lease has not run out.
func (h *Hold) Alive() bool { return h.place.Desk.Session.Alive() }

// Left returns how much of the lease is left.
func (h *Hold) Left() time.Duration {
	left, _ := h.place.Desk.Session.Left()
	return left
}

// EndSession ends the session for this client, because its lease has run out.
func (h *Hold) EndSession() { h.place.Desk.Session.End(driver.Expired, errs.ErrLeaseOver) }

// SessionCause returns why the session has ended; nil if it has not.
func (h *Hold) SessionCause() error { return h.place.Desk.Session.Cause() }

// KeepBack has the place leave the queue when the hold has ended: it is neither passed on nor kept.
func (h *Hold) KeepBack() { h.place.Doubt() }

// Attend makes the client watch the nodes of the place at once, for a holder that wants to learn of a
// revocation: see place.Place.Attend.
func (h *Hold) Attend() (reason string, revoked bool) { return h.place.Attend() }

// Read reads a znode on the hold's session: see place.Place.Read.
func (h *Hold) Read(ctx context.Context, path string) (driver.Node, error) {
	return h.place.Read(ctx, path)
}

// Txn runs a transaction that begins with checks of the place's nodes. again allows to repeat it when
// its outcome is unknown.
func (h *Hold) Txn(ctx context.Context, hd Handle, kind string, ops []driver.Op, again bool) ([]driver.OpResult, error) {
	if !h.beginTxn() {
		return nil, errs.ErrReleased
	}
	defer h.endTxn()
	if !hd.Held() { // looked at after beginTxn: from then on a release waits
		return nil, errs.ErrReleased
	}
	results, err := h.place.Txn(ctx, kind, ops, again)
	switch {
	case errors.Is(err, errs.ErrNodeGone), errors.Is(err, errs.ErrSessionOver):
		return nil, errs.ErrReleased
	case !again && errors.Is(err, driver.ErrConnLoss):
		return nil, fmt.Errorf("%w: %w", errs.ErrUnknownOutcome, err)
	}
	return results, err
}

// beginTxn counts a Txn as under way. It returns false if the hold is over.
func (h *Hold) beginTxn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	if h.txns++; h.txns == 1 {
		h.settled = make(chan struct{})
	}
	return true
}

func (h *Hold) endTxn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.txns--; h.txns == 0 {
		close(h.settled)
	}
}

// awaitTxns waits until no Txn of the hold is under way, until ctx ends, or until a session
// timeout has passed. It returns what is left of the timeout. A Txn that is still under way could
// be applied while the next holder has the lock. So awaitTxns marks the place, which is then not
// passed on: its node is deleted, and the check at the beginning of the Txn fails.
func (h *Hold) awaitTxns(ctx context.Context) (left time.Duration) {
	limit := h.place.Desk.Session.Timeout()
	h.mu.Lock()
	settled, busy := h.settled, h.txns > 0
	h.mu.Unlock()
	if !busy {
		return limit
	}
	began := time.Now()
	session.Sleep(ctx, limit, settled)
	select {
	case <-settled:
	default:
		h.place.Doubt()
	}
	return max(0, limit-time.Since(began))
}

// SetLabel replaces the label that others read of the holder. It returns when the ensemble has
// confirmed that.
func (h *Hold) SetLabel(ctx context.Context, hd Handle, label string) error {
	p := h.place
	h.mu.Lock() // the hold has the label first: see place.Place.Amend
	h.origin.Label = queue.Truncate(label, queue.MaxLabel)
	h.mu.Unlock()
	err := p.Amend(ctx, func(d *queue.Data) { p.Relabel(d) })
	if errors.Is(err, driver.ErrNoNode) && hd.Held() {
		p.Lose()
	}
	switch {
	case !hd.Held(), errors.Is(err, driver.ErrNoNode), errors.Is(err, errs.ErrSessionOver):
		return errs.ErrReleased // also without an error: the label was not written, if the handle had ended by then
	case err != nil && ctx.Err() != nil, errors.Is(err, errs.ErrUnavailable):
		return fmt.Errorf("label not confirmed: other clients may read the old one or the new one: %w", errs.WhyEnded(ctx, err))
	}
	return p.Explain(err)
}

// Downgrade turns a writer's hold into a reader's, when Txns under way have ended. It does nothing to
// a reader's. From then on the hold is a reader's in this process, also if there is an error.
func (h *Hold) Downgrade(ctx context.Context) error {
	p := h.place
	s := p.Desk
	lowered, err := h.lower()
	for ; err == errTxnUnderWay; lowered, err = h.lower() {
		h.awaitTxns(ctx)
	}
	if !lowered {
		return err
	}
	done, mode := make(chan error, 1), h.Mode().String()
	if !s.Session.Spawn(func() { done <- p.Amend(s.Session.Context(), func(d *queue.Data) { d.Mode = mode }) }) {
		return errs.ErrReleased
	}
	if !h.apart {
		h.home.serve(nil)
	}
	if h.admitted { // TestDowngradeOpensTheGate
		h.home.leavesGate(h)
	}
	select {
	case err := <-done:
		switch {
		case errors.Is(err, driver.ErrNoNode):
			p.Lose()
			return errs.ErrReleased
		case errors.Is(err, errs.ErrSessionOver):
			return errs.ErrReleased
		}
		return p.Explain(err)
	case <-ctx.Done():
		return fmt.Errorf("downgrade not confirmed: the lock is a reader's here, and other clients see that later: %w", context.Cause(ctx))
	}
}

// errTxnUnderWay means that a Txn under way has to end before a downgrade.
var errTxnUnderWay = errors.New("a Txn is under way")

// lower turns a writer into a reader in this process; the ensemble does not know yet. It returns
// false if nothing was done: the hold is over (ErrReleased), a Txn has to end first, the hold was
// a reader's already, or it cannot be downgraded.
func (h *Hold) lower() (lowered bool, err error) {
	h.mu.Lock()
	lowered, err = h.mayLowerLocked()
	h.mu.Unlock()
	if !lowered {
		return false, err // a Downgrade that does nothing takes no turn
	}
	turn, ok := h.place.Advance(h)
	if !ok {
		return false, errs.ErrReleased
	}
	if lowered, err = h.lowerTo(turn); lowered && !h.place.Lower(h) {
		return false, errs.ErrReleased
	}
	return lowered, err
}

// lowerTo makes a writer's hold a reader's. Readers that join from then on have the turn, which the
// place has advanced before; if the hold stays as it is, that turn is not used. The place becomes a
// reader's after the hold: until then it could only go to a holder of this process.
func (h *Hold) lowerTo(turn uint32) (lowered bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lowered, err = h.mayLowerLocked(); lowered {
		h.mode, h.turn = h.mode.Lowered(), turn
	}
	return lowered, err
}

// mayLowerLocked reports whether a hold is a writer's that can become a reader's. The error says why
// it cannot; it is nil for a reader's. mu is held.
func (h *Hold) mayLowerLocked() (bool, error) {
	p := h.place
	switch {
	case h.over:
		return false, errs.ErrReleased
	case p.Size() > 1 || h.mode.Lowered() == 0 || len(h.handles) > 1 && h.mode.Lowers():
		return false, fmt.Errorf("%w: only a writer's lock on one name, with one handle, can be downgraded", errs.ErrConflict)
	case !h.mode.Lowers():
		return false, nil
	case p.InDoubt():
		return false, fmt.Errorf("%w: a Txn under the lock may still be applied, so the lock stays a writer's: check what the Txn wrote, and release the lock", errs.ErrUnknownOutcome)
	case h.txns > 0:
		return false, errTxnUnderWay
	}
	return true, nil
}

// Nodes returns the nodes of a hold. ok is false if they are about to go. A writer's node that readers have got counts as
// a reader's: readers of other processes wait for it until handover_time has passed, and no longer. See place.ShareAt.
func (h *Hold) Nodes() (all []NamedNode, ok bool) {
	own, ok := h.place.Contenders()
	mode, _ := h.describe()
	for i, c := range own {
		if c.Mode.Lowers() && c.Mode.Lowered() == mode {
			c.Mode = mode
		}
		all = append(all, NamedNode{c, h.wants[i].Name})
	}
	return all, ok
}
