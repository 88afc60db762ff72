package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// admitReaders makes a reader's place of a writer's, which a reader has taken
// over: with the node, which it keeps, it keeps its position. Readers of other
// processes count it as a writer's until its data says otherwise; that is brought
// about in the background.
func (p *place) admitReaders(o origin) {
	s := p.s
	s.Mu.Lock()
	was := p.nodes[0].kind.Mode
	if was == queue.Exclusive {
		p.nodes[0].kind.Mode = queue.Shared
	}
	s.Mu.Unlock()
	if was == queue.Exclusive {
		d := s.nodeData(o, queue.Shared)
		s.Spawn(func() { _ = p.rewrite(d) }) // it fails only if the node is gone
	}
}

// admitReadersLocked has a place that is handed from a writer to a reader made a
// reader's, in time. Where others queue that is now. Else it keeps until the place
// is handed over no more: meanwhile writers here can have it back, for nothing, and
// a reader of another process that comes waits no longer than it would for them.
func (t *turnstile) admitReadersLocked(p *place, r *request) {
	if p.others {
		p.admitReaders(r.origin)
		return
	}
	s := p.s
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if p.admit == nil && p.nodes[0].kind.Mode == queue.Exclusive {
		p.admit = time.AfterFunc(time.Until(p.granted.Add(t.all.cfg.handoverTime)), func() { s.Spawn(func() { t.admitLast(p) }) })
	}
}

// admitLast does what admitReadersLocked has put off, if readers hold the place.
// They are the last who do.
func (t *turnstile) admitLast(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.s.Mu.Lock()
	h := p.hold
	p.s.Mu.Unlock()
	if h == nil || !h.shared() || h.isOver() {
		return
	}
	p.admitReaders(h.origin)
	t.admitLocked(nil) // a writer that waits is not going to get the node now
}
