package place

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// refresh brings the line up to date: without a request while the line can be walked, and
// otherwise with a new list of the queue.
func (l *line) refresh(ctx context.Context) error {
	if l.q != nil {
		l.update()
	}
	if l.q != nil {
		return nil
	}
	desk := l.p.Desk
	l.sight.Gen, _ = desk.DS.Conn()
	q, err := ownNodesOf(l.p).list(ctx, l.c)
	if err != nil {
		return err
	}
	l.listed(q)
	return nil
}

// watchAhead watches the nodes of the line that queue.Decide has named, by their
// indices. It returns nil if its reads change the line: then queue.Decide may name
// others.
func (l *line) watchAhead(ctx context.Context, watch []int) ([]*session.Watched, error) {
	desk, c := l.p.Desk, l.c
	permits := c.kind.Permits
	ahead := make([]*session.Watched, len(watch))
	for i, j := range watch {
		w, read, err := desk.Watches.Watch(ctx, c.dir+"/"+l.q[j].Name)
		if errors.Is(err, driver.ErrNoNode) {
			// A newer connection than that of the last event proves nothing together
			// with that event, whatever its server answers.
			if gen, _ := desk.DS.Conn(); l.seen(gen, true) {
				l.removeGone(j, gen, false)
			}
			if permits > 0 {
				l.q = nil
			}
			return nil, nil
		}
		if err != nil {
			return nil, desk.cfg.explainList(err, c.dir)
		}
		if !l.seen(w.Gen, read) {
			return nil, nil
		}
		d, _ := queue.Decode(w.Node.Data)
		if permits > 0 && len(l.q)-1 > permits && d.Granted {
			l.q = nil // it was granted before we watched it: now we are the first in line
			return nil, nil
		}
		if l.q[j].Kind = queue.Effective(l.q[j].Kind, d); permits == 0 && l.q[j].Kind.Mode == queue.Shared && c.kind.Mode == queue.Shared {
			return nil, nil // no reason to wait for it any more
		}
		ahead[i] = w
	}
	return ahead, nil
}
