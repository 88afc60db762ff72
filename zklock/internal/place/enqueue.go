package place

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// enqueue gives the attempt a place that waits in the queue: the one that it was given, if that is of
// use, or else a new one at the tail. turn means that the transaction which created the
// new place proves that it is its turn: see creation.created.
func (a *Attempt) enqueue(ctx context.Context) (turn bool, err error) {
	defer a.cancel()
	r := a.Claim
	if a.place != nil && a.place.opening == nil && a.place.resume(r.Wants) {
		if r.Mode.Joins() {
			a.place.BecomeShared(&r.Origin)
		}
	} else {
		if r.Try {
			if err := a.blocked(a.patient); err != nil {
				return false, err
			}
		}
		if turn, err = a.replaceOrCreate(ctx); err != nil {
			return false, err
		}
	}
	a.since, r.NoSessionSince = r.NoSessionSince, time.Time{}
	return turn, nil
}

// resume takes up a place for a request of the same names, which goes on waiting in it. It returns false if a new
// place has to replace it: it was held before, and is not reserved for this request, or its nodes
// do not grant what the request wants.
func (p *Place) resume(wants []Want) bool {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if p.mustRequeue() {
		return false
	}
	for i, n := range p.nodes {
		if !n.kind.Mode.Covers(wants[i].Kind.Mode) {
			return false
		}
	}
	p.dataTurn = 0                 // its nodes' data describe another request
	p.progress.moveLocked(resumed) // refused if it was not held before
	return true
}

// mustRequeue reports whether the place was held before and is not reserved. Then
// a new place replaces it at the tail of the queue.
func (p *Place) mustRequeue() bool {
	return !p.Granted.IsZero() && p.progress.state() != reserved // TestReservedPlaceIsNotTakenUpTwice
}

// replaceOrCreate takes a new place in the queue of every wanted name, usually in one round trip. The
// same transaction deletes the nodes of the place that the attempt has, if it has one.
//
// ctx is the context of the acquisition; until there is a place, patient bounds it. A create may outlast
// that while the session answers, because creates below one znode take a transaction each, and
// there may be thousands of them.
func (a *Attempt) replaceOrCreate(ctx context.Context) (turn bool, err error) {
	desk, r := a.desk(), a.Claim
	const maxReaped = 8 // if the parent was removed this often in a row, that is not a coincidence
	began := lease.Now()
	if err := desk.needRoot(a.patient); err != nil {
		return false, err
	}
	for reaped := 0; ; {
		turn, err = a.create(a.patient, ctx)
		if !errors.Is(err, driver.ErrNoNode) {
			return turn, err
		}
		// A parent was removed, as idle containers are, or the node to replace is gone. Nothing of
		// the transaction was applied.
		for _, w := range r.Wants {
			desk.parents.forget(w.Path)
		}
		if a.place != nil {
			a.place.Remove()
			a.place = nil
			continue
		}
		if reaped++; reaped == maxReaped {
			return false, desk.cfg.explain(err, r.Wants[0].Path)
		}
		if !session.Sleep(a.patient, desk.cfg.Jitter(time.Duration(reaped)*5*time.Millisecond), desk.Session.Context().Done()) {
			return false, desk.Session.WaitEnded(a.patient, began)
		}
	}
}
