package place

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// refresh makes the line what is known of the queue now: what is left of it, or what a new
// list has if that is too little to go by.
func (l *line) refresh(ctx context.Context) error {
	if l.q != nil {
		l.update()
	}
	if l.q != nil {
		return nil
	}
	s := l.p.Desk
	l.gen, _ = s.DS.Conn()
	q, err := ownNodes{l.p}.list(ctx, l.c)
	if err != nil {
		return err
	}
	if limit := s.cfg.MaxContenders; limit > 0 && !l.p.counted && len(q) > limit {
		return fmt.Errorf("%w: max_contenders=%d are in the queue", errs.ErrTooManyWaiters, limit)
	}
	l.listed(q)
	return nil
}

// watchAhead watches those in line whom queue.Decide has named. It returns nil if what it
// reads changes the line, so that there may be others to watch.
func (l *line) watchAhead(ctx context.Context, watch []int) ([]*session.Watched, error) {
	s, c := l.p.Desk, l.c
	permits := c.kind.Permits
	ahead := make([]*session.Watched, len(watch))
	for i, j := range watch {
		w, read, err := s.Watches.Watch(ctx, c.dir+"/"+l.q[j].Name)
		if errors.Is(err, driver.ErrNoNode) {
			// A newer connection than the one of the last event proves nothing
			// beside it, whatever its server says.
			if gen, _ := s.DS.Conn(); l.seen(gen, true) {
				l.left(j, gen, false)
			}
			if permits > 0 {
				l.q = nil
			}
			return nil, nil
		}
		if err != nil {
			return nil, s.cfg.explainList(err, c.dir)
		}
		if !l.seen(w.Gen, read) {
			return nil, nil
		}
		d, _ := queue.Decode(w.Node.Data)
		if permits > 0 && len(l.q)-1 > permits && d.Granted {
			l.q = nil // it was granted before we watched: we are the first in line
			return nil, nil
		}
		if l.q[j].Kind = queue.Effective(l.q[j].Kind, d); permits == 0 && l.q[j].Kind.Mode == queue.Shared && c.kind.Mode == queue.Shared {
			return nil, nil // no reason to wait for it any more
		}
		ahead[i] = w
	}
	return ahead, nil
}
