package place

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Rewrite replaces a place's data, however long that takes.
func (p *Place) Rewrite(d queue.Data) error {
	s := p.Desk
	return s.Repeat(s.Ctx, "mark", func(ctx context.Context) error {
		_, err := s.DS.Set(ctx, p.nodes[0].path(), d.Encode(), driver.AnyVersion)
		return err
	})
}

// BecomeShared makes a reader's place of a writer's, which a reader has taken
// over: with the node, which it keeps, it keeps its position. Readers of other
// processes count it as a writer's until its data says otherwise; that is brought
// about in the background.
func (p *Place) BecomeShared(o Origin) {
	s := p.Desk
	s.Mu.Lock()
	was := p.nodes[0].kind.Mode
	if was == queue.Exclusive {
		p.nodes[0].kind.Mode = queue.Shared
	}
	s.Mu.Unlock()
	if was == queue.Exclusive {
		d := s.NodeData(o, queue.Shared)
		s.Spawn(func() { _ = p.Rewrite(d) }) // it fails only if the node is gone
	}
}

// ShareAt has a writer's place, unless that is due already, turn to do at some
// time, which is not before that: do makes a reader's of it then, if readers have it.
// A place that is given up first is not turned to any more.
func (p *Place) ShareAt(when time.Time, do func(*Place)) {
	s := p.Desk
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if p.share == nil && p.nodes[0].kind.Mode == queue.Exclusive {
		p.share = time.AfterFunc(time.Until(when), func() { s.Spawn(func() { do(p) }) })
	}
}

// LowerLocked makes a reader's place of a writer's, which has it, in this process; see
// Rewrite for others. It returns the turn of the readers that join from then on, who come
// after the writer. The session's mutex is held.
func (p *Place) LowerLocked() (turn uint32) {
	p.nodes[0].kind = queue.Kind{Mode: queue.Shared} // it is never handed to a writer again
	turn = p.turn
	p.turn++
	return turn
}
