package place

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// refresh returns the line up to our own node: without a request while the line can be
// walked, and otherwise from a new list of the queue.
func (l *line) refresh(ctx context.Context) ([]queue.Node, error) {
	if q := l.walk(); q != nil {
		return q, nil
	}
	desk := l.p.Desk
	l.sight.Gen, _ = desk.DS.Conn()
	q, err := l.p.listQueue(ctx, l.c)
	if err != nil {
		return nil, err
	}
	l.listed(q)
	return q, nil
}

// watchAhead watches the contenders in watched. It returns nil if its reads change the line:
// then queue.Decide may name others.
func (l *line) watchAhead(ctx context.Context) ([]*session.Watched, error) {
	desk, c := l.p.Desk, l.c
	permits := c.kind.Permits
	ahead := make([]*session.Watched, len(l.watched))
	for i := range ahead {
		w, read, err := desk.Watches.Watch(ctx, c.dir+"/"+l.watched[i].Name)
		if errors.Is(err, driver.ErrNoNode) {
			// A newer connection than that of the last event proves nothing together
			// with that event, whatever its server answers.
			if gen, _ := desk.DS.Conn(); l.seen(gen, true) {
				l.removeGone(i, gen, false)
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
		if permits > 0 && l.ahead > permits && d.Granted {
			l.forget() // it was granted before we watched it: now we are the first in line
			return nil, nil
		}
		if l.watched[i].Kind = queue.Effective(l.watched[i].Kind, d); permits == 0 && !l.waitsFor(l.watched[i]) {
			l.pass(i)
			return nil, nil
		}
		ahead[i] = w
	}
	return ahead, nil
}

// report names to the requester the contender that it waits for: the nearest one.
func (l *line) report(by Requester, ahead []*session.Watched) {
	nearest := len(ahead) - 1
	by.Waits(l.ahead, entryOf(l.watched[nearest], ahead[nearest].Node))
}
