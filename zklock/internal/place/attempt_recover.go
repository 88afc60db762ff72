package place

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// recover finds out what became of a creation whose reply was lost. The Sync
// orders the list behind everything the old connection may have sent: after a
// reconnect a server refuses what comes from the old one. The nodes of a place
// were created together, so the first one tells for all; the others' names are
// read from lists of their own.
func (a Attempt) recover(ctx context.Context, p *Place) (found bool, err error) {
	s := p.Desk
	for i, c := range p.nodes {
		var q []queue.Node
		err = s.Repeat(ctx, "recover", func(ctx context.Context) error {
			if err := s.DS.Sync(ctx, c.dir); err != nil {
				return err
			}
			q, _, err = Znode{s, c.dir}.listOnce(ctx)
			return err
		})
		if err != nil && !errors.Is(err, driver.ErrNoNode) { // no parent: no node
			return false, err
		}
		queue.Sort(q)
		node := ""
		for j := range q {
			if q[j].GUID == c.guid { // the lowest, should there be two
				node = q[j].Name
				break
			}
		}
		switch {
		case node != "":
			s.Mu.Lock()
			c.settleLocked(c.dir + "/" + node)
			s.Mu.Unlock()
		case i == 0:
			return false, nil
		default:
			return true, errs.ErrNodeGone // it was there: somebody has deleted it
		}
	}
	return true, nil
}

// abandon is Place.Remove for a place whose creation may still be under way, as w, or
// may have had an unknown outcome. What it replaces is given up with it.
func (a Attempt) abandon(p *Place, w *session.Write) {
	s := p.Desk
	p.giveUp()
	s.Spawn(func() {
		applied, known := settled(p), false
		if w != nil {
			<-w.Done // soon: it runs on the session's context
			switch {
			case w.Err == nil:
				applied, known = true, true
			case errors.Is(w.Err, driver.ErrConnLoss):
				p.doubtful = true
			default:
				known = true // surely not applied
			}
		}
		if !applied && !known {
			found, _ := Attempt{Desk: s}.recover(s.Ctx, p) // the request is not kept for it
			applied = found || settled(p)
		}
		if old := p.replaces; old != nil {
			p.replaces = nil
			if applied {
				old.forget()
			} else {
				old.Remove()
			}
		}
		if applied {
			_ = removal{p}.untilGone()
		} else {
			p.forget()
		}
	})
}

// settled reports whether the outcome of a place's creation is known.
func settled(p *Place) bool {
	p.Desk.Mu.Lock()
	defer p.Desk.Mu.Unlock()
	return p.nodes[0].node != ""
}
