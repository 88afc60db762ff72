package place

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// armed is what a watch on a contender ahead has shown.
type armed struct {
	w    *session.Watched
	read bool
	err  error
}

// arm arms the watches on the contenders in watched that have none, at the same time: a permit's waiter may watch as many
// contenders as there are permits, and more. Those of one session share a watch on each.
func (l *line) arm(ctx context.Context) []armed {
	all := make([]armed, len(l.watched))
	arm := func(i int) {
		a := &all[i]
		a.w, a.read, a.err = l.p.Desk.Session.Watch(ctx, l.c.dir+"/"+l.watched[i].Name)
	}
	if len(all) == 1 {
		if l.watches[0] == nil {
			arm(0)
		}
		return all
	}
	var others sync.WaitGroup
	for i, w := range l.watches {
		if w == nil {
			others.Go(func() { arm(i) })
		}
	}
	others.Wait()
	return all
}

// watchAhead watches the contenders in watched. If its reads change the line, watched is nil then,
// and queue.Decide may name others.
func (l *line) watchAhead(ctx context.Context) error {
	desk, c := l.p.Desk, l.c
	permits, i := c.kind.Permits, 0
	for _, a := range l.arm(ctx) {
		switch {
		case l.watches[i] != nil:
			i++
			continue
		case errors.Is(a.err, driver.ErrNoNode) && l.spares(i):
			continue
		case errors.Is(a.err, driver.ErrNoNode):
			if gen := desk.Session.Generation(); l.seen(gen, a.read) {
				l.removeGone(i, gen, false)
			}
			return nil
		case a.err != nil:
			return desk.cfg.explainList(a.err, c.dir)
		case !l.seen(a.w.Gen, a.read):
			return nil
		}
		if o := l.watched[i].Kind.Mode; permits == 0 && o.Lowers() && l.self.Kind.Mode.Excludes(o.Lowered()) {
			l.watches[i] = a.w // whatever its data say: ours waits for it
			i++
			continue
		}
		d, _ := queue.Decode(a.w.Node.Data)
		if l.awaitsGrant && i == len(l.watched)-1 && d.Granted { // TestPermitMarkedBeforeItIsWatched
			l.forget() // it was granted before we watched it: now we are one of the first in line
			return nil
		}
		if l.watched[i].Kind = queue.Effective(l.watched[i].Kind, d); permits == 0 && !l.waitsFor(l.watched[i]) {
			l.lowered = append(l.lowered, l.watched[i].Name)
			l.pass(i)
			return nil
		}
		l.watches[i] = a.w
		i++
	}
	return nil
}

// goesOn takes in what has happened to the watched contenders, for a permit, and reports whether the wait goes on without a look at the
// queue. One that stays, and has marked its node or changed its data, is watched again.
func (l *line) goesOn() bool {
	for i := 0; i < len(l.watches); {
		e := l.watches[i].Fires()
		if e == nil {
			i++
			continue
		}
		l.p.Desk.Session.DropWatch(l.watches[i])
		switch {
		case e.Err == nil && e.Type == driver.EventDeleted && l.spares(i):
		case e.Err == nil && e.Type == driver.EventChanged && !l.awaitsGrant:
			l.watches[i] = nil
			i++
		default:
			return false
		}
	}
	return true
}

// spares takes the contender at index i out of watched, which has left, and reports whether the wait goes on without a look at the queue.
func (l *line) spares(i int) bool {
	if l.spare == 0 {
		return false
	}
	l.spare, l.ahead, l.watched, l.watches = l.spare-1, l.ahead-1, slices.Delete(l.watched, i, i+1), slices.Delete(l.watches, i, i+1)
	return true
}
