package place

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Grant has the requester begin a hold of a place whose turn it is, if the session is
// alive, its lease is long enough and the place not on its way out at this very moment;
// else it returns false.
func (p *Place) Grant(by Requester) bool {
	s := p.Desk
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !p.leasedLocked() || !p.life.moveLocked(held) {
		return false
	}
	if p.Granted.IsZero() {
		p.Granted = time.Now()
		s.own.add(p)
	} else {
		p.handovers++
	}
	p.hold = by.Begin(p, p.turn)
	p.turn++
	s.Tenants[p.hold] = struct{}{}
	return true
}

// Leased reports whether the session's lease is long enough for one more holder.
func (p *Place) Leased() bool {
	p.Desk.Mu.Lock()
	defer p.Desk.Mu.Unlock()
	return p.leasedLocked()
}

func (p *Place) leasedLocked() bool { return p.Desk.LeftLocked() >= p.Desk.Lease.Least() }

// MayPass reports whether a place may be handed over to a holder of that mode, as far as
// fairness and the node's own mode go: limit times where others queue, and for as long as
// within after it was first granted.
func (p *Place) MayPass(mode queue.Mode, limit int, within time.Duration) bool {
	if p.Readers() && mode != queue.Shared || p.doubtfulTxn.Load() {
		return false
	}
	if time.Since(p.Granted) >= within {
		return false
	}
	return !p.Others || p.handovers < limit
}

// Over takes a hold that is over off the place and its session.
func (p *Place) Over(h session.Tenant) {
	p.Desk.Mu.Lock()
	defer p.Desk.Mu.Unlock()
	delete(p.Desk.Tenants, h)
	p.OverLocked(h)
}

// OverLocked is Over for a hold that is off its session. The session's mutex is held.
func (p *Place) OverLocked(h session.Tenant) {
	if p.hold == h {
		p.hold = nil
		p.life.moveLocked(spent)
	}
}

// Holder returns who has the place; nil: nobody.
func (p *Place) Holder() session.Tenant {
	p.Desk.Mu.Lock()
	defer p.Desk.Mu.Unlock()
	return p.hold
}

// Deleted reports whether another client has deleted a node of the place.
func (p *Place) Deleted() bool { return p.life.is() == deleted }

// Lose says that a node of the place was deleted by another client. The hold on
// it is lost; what is left of the place leaves the queue. The session lives on. Only
// the first call does anything: several may have noticed.
func (p *Place) Lose() {
	s := p.Desk
	s.Mu.Lock()
	if !p.life.moveLocked(deleted) {
		s.Mu.Unlock()
		return
	}
	h := p.hold
	p.hold = nil
	if h != nil {
		s.Notices.Expect()
		defer s.Notices.Expected()
		delete(s.Tenants, h)
		s.SpareLocked() // before any caller knows, and so before one can close the session
	}
	s.Mu.Unlock()
	if h == nil {
		p.Remove()
		return
	}
	lost := session.Evict([]session.Tenant{h}, errs.ErrNodeDeleted, time.Now())
	for _, t := range lost {
		t.Vacate()
	}
	removal{p}.lost()
	s.Notices.Lost(session.TellAll(lost))
}
