package place

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Rewrite replaces the data of a place's first node. It repeats the write until that is
// done, the node is gone or the session is over.
func (p *Place) Rewrite(d queue.Data) error {
	desk := p.Desk
	d.Keep = p.keepable
	return desk.Repeat(desk.Ctx, "mark", func(ctx context.Context) error {
		_, err := desk.DS.Set(ctx, p.nodes[0].path(), d.Encode(), driver.AnyVersion)
		return err
	})
}

// BecomeShared turns a writer's place that a reader has taken over into a reader's
// place. The place keeps its node, and so its position. Readers of other processes
// count the node as a writer's until its data says that it is a reader's, which
// BecomeShared writes in the background.
func (p *Place) BecomeShared(o Origin) {
	desk := p.Desk
	desk.Mu.Lock()
	was := p.nodes[0].kind.Mode
	if was == queue.Exclusive {
		p.nodes[0].kind.Mode = queue.Shared
	}
	desk.Mu.Unlock()
	if was == queue.Exclusive {
		d := desk.NodeData(o, queue.Shared)
		desk.Spawn(func() { _ = p.Rewrite(d) }) // it fails only if the node or the session is gone
	}
}

// ShareAt calls do with a writer's place at the time when, or later. do then turns it
// into a reader's place, if readers hold it. ShareAt does nothing for a reader's place,
// and nothing if it was called before. do is not called if the place is given up first.
func (p *Place) ShareAt(when time.Time, do func(*Place)) {
	desk := p.Desk
	desk.Mu.Lock()
	defer desk.Mu.Unlock()
	if p.share == nil && p.nodes[0].kind.Mode == queue.Exclusive {
		p.share = time.AfterFunc(time.Until(when), func() { desk.Spawn(func() { do(p) }) })
	}
}

// LowerLocked turns the place of the writer that holds it into a reader's place for
// this process. Other processes learn that from the node's data: see Rewrite. It
// returns the turn of the readers that join from then on, which is later than the
// writer's. The session's Mu is held.
func (p *Place) LowerLocked() (turn uint32) {
	p.nodes[0].kind = queue.Kind{Mode: queue.Shared} // it is never handed to a writer again
	turn = p.turn
	p.turn++
	return turn
}
