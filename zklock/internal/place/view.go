package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// View looks at the queue of one name again and again, on one session. It reads each
// contender's node once. Only the first node is read again when its data changes, if it is a
// writer's, which can become a reader's and let others hold, or if it may be kept: its holder is
// described later. All other grants follow from nodes that appear and disappear. A View is for
// one goroutine.
type View struct {
	Znode

	synced bool  // the server knew what was committed when the View was new
	last   Queue // the newest look

	// What the next look waits for: the watch on the children, or on the existence of the
	// znode if that is missing; and the watch on the first node: see watchHead.
	queue *session.Watched
	head  *session.Watched
	name  string // of the node that head is on
}

// Look returns the queue as it is now. It arms the watches for Changed first. The caller
// must not keep the queue beyond the next Look.
func (v *View) Look(ctx context.Context) (Queue, error) {
	if !v.synced {
		if err := v.Sync(ctx); err != nil {
			return Queue{}, v.cfg.explain(err, v.Path)
		}
		v.synced = true
	}
	for {
		if v.queue == nil || v.queue.Fires() != nil {
			if err := v.list(ctx); err != nil {
				return Queue{}, v.cfg.explain(err, v.Path)
			}
		}
		if gone, err := v.watchHead(ctx); err != nil || !gone {
			return v.last, v.cfg.explain(err, v.Path)
		}
		// The children have changed since they were listed.
		v.Watches.Drop(v.queue)
		v.queue = nil
	}
}

// list lists the queue, arms the watch on that, and reads the nodes that are new.
func (v *View) list(ctx context.Context) error {
	w, names, err := v.Watches.WatchChildren(ctx, v.Path)
	for errors.Is(err, driver.ErrNoNode) {
		var found bool
		if w, found, err = v.Watches.WatchExists(ctx, v.Path); err != nil {
			return err
		}
		if !found {
			v.queue, v.head, v.last = w, nil, Queue{}
			return nil
		}
		w, names, err = v.Watches.WatchChildren(ctx, v.Path) // it was created in between
	}
	if err != nil {
		return err
	}
	known := make(map[string]Entry, len(v.last.Known))
	for _, same := range append(v.last.Others, v.last.Known) {
		for _, e := range same {
			known[e.Name] = e
		}
	}
	found, _ := v.sort(names)
	if v.last, err = v.read(ctx, found, known, make(turns, maxReads)); err != nil {
		v.queue, v.last = nil, Queue{}
		return err
	}
	v.queue = w
	return nil
}

// watchHead arms the watch on the first contender, if that is a writer or may be kept, and
// updates its entry with what the read shows. gone means that its node does not exist any more.
func (v *View) watchHead(ctx context.Context) (gone bool, err error) {
	q := v.last
	if len(q.Known) == 0 || q.Known[0].Kind.Mode != queue.Exclusive && !q.Known[0].MayBeKept() {
		v.head = nil
		return false, nil
	}
	first := &q.Known[0]
	if v.head != nil && v.name == first.Name {
		switch event := v.head.Fires(); {
		case event == nil:
			return false, nil
		case event.Type == driver.EventDeleted:
			v.head = nil
			return true, nil // the event of the children may be on its way still
		}
	}
	w, _, err := v.Watches.Watch(ctx, v.Path+"/"+first.Name)
	if errors.Is(err, driver.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	v.head, v.name = w, first.Name
	first.fill(w.Node, false)
	return false, nil
}

// Changed waits until the queue may have changed since the newest look. It returns an error
// if ctx or the session has ended, or if the session has been without a connection for
// connect_timeout.
func (v *View) Changed(ctx context.Context) error {
	watched := []*session.Watched{v.queue}
	if v.head != nil {
		watched = append(watched, v.head)
	}
	for {
		state, changed := v.DS.State()
		var patience time.Duration
		if state == driver.Suspended {
			patience = v.cfg.ConnectTimeout
		}
		fired, late := awaitEvent(ctx, watched, patience, changed, v.Ctx.Done())
		switch {
		case fired != nil:
			v.Watches.Drop(fired)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case v.Ctx.Err() != nil:
			return errs.ErrSessionOver
		case late:
			return fmt.Errorf("%w for %v", errs.ErrUnavailable, patience)
		}
	}
}
