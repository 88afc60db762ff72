package zklock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// rewrite replaces a place's data, however long that takes.
func (p *place) rewrite(d queue.Data) error {
	s := p.s
	return s.Repeat(s.Ctx, "mark", func(ctx context.Context) error {
		_, err := s.DS.Set(ctx, p.nodes[0].path(), d.Encode(), driver.AnyVersion)
		return err
	})
}

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

// admitReadersAt has a writer's place, unless that is due already, turn to do at some
// time, which is not before that: do makes a reader's of it then, if readers have it.
// A place that is given up first is not turned to any more.
func (p *place) admitReadersAt(when time.Time, do func(*place)) {
	s := p.s
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if p.admit == nil && p.nodes[0].kind.Mode == queue.Exclusive {
		p.admit = time.AfterFunc(time.Until(when), func() { s.Spawn(func() { do(p) }) })
	}
}

// lowerLocked makes a reader's place of a writer's, which has it, in this process; see
// rewrite for others. It returns the turn of the readers that join from then on, who come
// after the writer. The session's mutex is held.
func (p *place) lowerLocked() (turn uint32) {
	p.nodes[0].kind = queue.Kind{Mode: queue.Shared} // it is never handed to a writer again
	turn = p.turn
	p.turn++
	return turn
}
