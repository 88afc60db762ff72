package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// grant has the requester begin a hold of a place whose turn it is, if the session is
// alive, its lease is long enough and the place not on its way out at this very moment;
// else it returns false.
func (p *place) grant(by requester) bool {
	s := p.s
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !p.grantableLocked() || !p.moveLocked(placeHeld) {
		return false
	}
	if p.granted.IsZero() {
		p.granted = time.Now()
		s.own.add(p)
	} else {
		p.handovers++
	}
	p.hold = by.begin(p, p.turn)
	p.turn++
	s.Tenants[p.hold] = struct{}{}
	return true
}

// grantable reports whether a place whose turn it is could be granted now.
func (p *place) grantable() bool {
	p.s.Mu.Lock()
	defer p.s.Mu.Unlock()
	return p.grantableLocked()
}

func (p *place) grantableLocked() bool {
	return !p.ending() && p.s.LeftLocked() >= p.s.Lease.Least()
}

// mayPass reports whether a place may be handed over to a holder of that mode, as far as
// fairness and the node's own mode go: limit times where others queue, and for as long as
// within after it was first granted.
func (p *place) mayPass(mode queue.Mode, limit int, within time.Duration) bool {
	if p.readers() && mode != queue.Shared || p.doubtfulTxn.Load() {
		return false
	}
	if time.Since(p.granted) >= within {
		return false
	}
	return !p.others || p.handovers < limit
}

// over takes a hold that is over off the place and its session.
func (p *place) over(h session.Tenant) {
	p.s.Mu.Lock()
	defer p.s.Mu.Unlock()
	delete(p.s.Tenants, h)
	p.overLocked(h)
}

// overLocked is over for a hold that is off its session. The session's mutex is held.
func (p *place) overLocked(h session.Tenant) {
	if p.hold == h {
		p.hold = nil
		p.moveLocked(spent)
	}
}

// holder returns who has the place; nil: nobody.
func (p *place) holder() session.Tenant {
	p.s.Mu.Lock()
	defer p.s.Mu.Unlock()
	return p.hold
}

// deleted reports whether another client has deleted a node of the place.
func (p *place) deleted() bool { return p.is() == deleted }

// lose says that a node of the place was deleted by another client. The hold on
// it is lost; what is left of the place leaves the queue. The session lives on. Only
// the first call does anything: several may have noticed.
func (p *place) lose() {
	s := p.s
	s.Mu.Lock()
	if !p.moveLocked(deleted) {
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
		p.remove()
		return
	}
	lost := session.Evict([]session.Tenant{h}, errs.ErrNodeDeleted, time.Now())
	for _, t := range lost {
		t.Vacate()
	}
	p.removeLost()
	s.Notices.Lost(session.TellAll(lost))
}
