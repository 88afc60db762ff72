package zklock

import "github.com/zklock/go-zklock/zklock/internal/place"

// shareWhenDueLocked has a place that is handed from a writer to a reader made a
// reader's, in time. Where others queue that is now. Else it keeps until the place
// is handed over no more: meanwhile writers here can have it back, for nothing, and
// a reader of another process that comes waits no longer than it would for them.
func (t *turnstile) shareWhenDueLocked(p *place.Place, r *request) {
	if p.Others {
		p.BecomeShared(r.Origin)
		return
	}
	p.ShareAt(p.Granted.Add(t.all.cfg.handoverTime), t.shareForGood)
}

// shareForGood does what shareWhenDueLocked has put off, if readers hold the place.
// They are the last who do.
func (t *turnstile) shareForGood(p *place.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, _ := p.Holder().(*hold)
	if h == nil || !h.shared() || h.isOver() {
		return
	}
	p.BecomeShared(h.origin)
	t.serveLocked(nil) // a writer that waits is not going to get the node now
}
