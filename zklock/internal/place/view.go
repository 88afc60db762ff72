package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// View looks at the queue of one name again and again, on one session. It reads each
// contender's node once. Only the first node is read again when its data changes, if it is a
// writer's, which can become a reader's and let others hold, or if it may be kept: its holder is
// described later. All other grants follow from nodes that appear and disappear. A View is for
// one goroutine.
type View struct {
	Znode Znode

	synced bool   // the server knew what was committed when the View was new
	last   Roster // the newest look

	// What the next look waits for: the watch on the children, or on the existence of the
	// znode if that is missing; and the watch on the first node: see watchHead.
	queue *session.Watched
	head  *session.Watched
	name  string // of the node that head is on
}

// Look returns the queue as it is now. It arms the watches for Changed first. The caller
// must not keep the queue beyond the next Look.
func (v *View) Look(ctx context.Context) (Roster, error) {
	if !v.synced {
		if err := v.Znode.Sync(ctx); err != nil {
			return Roster{}, err
		}
		v.synced = true
	}
	for {
		if v.queue == nil || v.queue.Fires() != nil {
			if err := v.list(ctx); err != nil {
				return Roster{}, v.Znode.Desk.cfg.explain(err, v.Znode.Path)
			}
		}
		if gone, err := v.watchHead(ctx); !gone {
			return v.last, v.Znode.Desk.cfg.explain(err, v.Znode.Path)
		}
		// The children have changed since they were listed.
		v.Znode.Desk.Session.DropWatch(v.queue)
		v.queue, v.head = nil, nil // a server that lags may still list the first node: then it is read
	}
}

// list lists the queue, arms the watch on that, and reads the nodes that are new.
func (v *View) list(ctx context.Context) error {
	w, names, err := v.Znode.Desk.Session.WatchChildren(ctx, v.Znode.Path)
	for errors.Is(err, driver.ErrNoNode) {
		if w, err = v.Znode.Desk.Session.WatchExists(ctx, v.Znode.Path); err != nil {
			return err
		}
		if !w.Found {
			v.queue, v.head, v.last = w, nil, Roster{}
			return nil
		}
		w, names, err = v.Znode.Desk.Session.WatchChildren(ctx, v.Znode.Path) // it was created in between
	}
	if err != nil {
		return err
	}
	known := make(map[string]Entry)
	for _, same := range v.last {
		for _, e := range same {
			known[e.Name] = e
		}
	}
	found, _, _ := v.Znode.sort(names)
	if v.last, err = v.Znode.read(ctx, found, known); err != nil {
		v.queue, v.last = nil, Roster{}
		return err
	}
	v.queue = w
	return nil
}

// watchHead arms the watch on the first contender, if that is a writer or may be kept, and
// updates its entry with what the read shows. If gone, its node does not exist, and err does not matter.
// A node that this client deletes has no holder whose changes could be seen: the event of the children
// says when it is gone.
func (v *View) watchHead(ctx context.Context) (gone bool, err error) {
	q := v.last[v.Znode.Desk.cfg.Dialect.Family]
	if len(q) == 0 || q[0].Stray || !q[0].Kind.Mode.Lowers() && !q[0].MayBeKept() {
		v.head = nil
		return false, nil
	}
	first := &q[0]
	if v.head != nil && v.name == first.Name {
		if e := v.head.Fires(); e == nil || e.Type == driver.EventDeleted {
			return e != nil, nil // once it is deleted, the event of the children is on its way
		}
	}
	w, _, err := v.Znode.Desk.Session.Watch(ctx, v.Znode.Path+"/"+first.Name)
	if err != nil {
		return errors.Is(err, driver.ErrNoNode), err
	}
	v.head, v.name = w, first.Name
	*first = entryOf(first.Node, w.Node, false)
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
		state, changed := v.Znode.Desk.Session.State()
		var patience time.Duration
		if state == driver.Suspended {
			patience = v.Znode.Desk.cfg.ConnectTimeout
		}
		fired, late := awaitEvent(ctx, watched, patience, changed, v.Znode.Desk.Session.Context().Done())
		switch {
		case fired != nil:
			v.Znode.Desk.Session.DropWatch(fired)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case v.Znode.Desk.Session.Context().Err() != nil:
			return errs.ErrSessionOver
		case late:
			return fmt.Errorf("%w for %v", errs.ErrUnavailable, patience)
		}
	}
}

// Walk reads the queues of all names below the root that start with a prefix, maxReads at the same
// time: it reads ahead of its caller. The names themselves are all in memory, as one list of the root
// has them all.
type Walk struct {
	// Prefix is what the names start with.
	Prefix string

	// Operate reads on a session, and again on another one if that is over.
	Operate func(ctx context.Context, read func(*Desk) error) error

	cfg  *NodeSettings
	next []*visit // in the byte order of their names
}

// visit is one znode below the root.
type visit struct {
	name, path string
	done       chan struct{} // nil: not begun; closed once the fields below are set
	queue      Roster
	below      []string // children that are not contenders
	err        error
}

// Run calls yield for each name that is in use, in byte order, until that returns false. An
// error in yield concerns that name only, and Run goes on; an error that ends the walk is
// returned.
//
// No request is under way when Run returns.
//
// A znode's name is in front of the names below it, so once the first visit was read, it is the
// next name: what is not known yet is below a visit.
func (w *Walk) Run(ctx context.Context, sh *Shared, yield func(name, path string, q Roster, err error) bool) error {
	w.cfg = sh.cfg
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := &visit{path: w.cfg.Root}
	if err := w.read(ctx, root); err != nil {
		if errors.Is(err, errs.ErrRootMissing) || errors.Is(err, driver.ErrNoNode) {
			return nil
		}
		return w.cfg.explain(err, w.cfg.Root)
	}
	w.add(root)
	for begun := 0; len(w.next) > 0; begun-- {
		for i := 0; i < len(w.next) && (i == 0 || begun < maxReads); i++ {
			if v := w.next[i]; v.done == nil {
				v.done = make(chan struct{})
				begun++
				readers.Go(func() {
					defer close(v.done)
					v.err = w.read(ctx, v)
				})
			}
		}
		v := w.next[0]
		select {
		case <-v.done:
		case <-ctx.Done():
		}
		w.next[0], w.next = nil, w.next[1:]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.add(v)
		switch {
		case errors.Is(v.err, driver.ErrNoNode):
		case errors.Is(v.err, driver.ErrNoAuth), errors.Is(v.err, driver.ErrReplyTooLarge):
			if !yield(v.name, v.path, Roster{}, w.cfg.explain(v.err, v.path)) {
				return nil
			}
		case v.err != nil:
			return w.cfg.explain(v.err, v.path)
		case !v.queue.Empty() && strings.HasPrefix(v.name, w.Prefix):
			if !yield(v.name, v.path, v.queue, nil) {
				return nil
			}
		}
	}
	return nil
}

// add adds the znodes below one that was read, as far as their names may start with the prefix, or
// lead to names that do.
func (w *Walk) add(above *visit) {
	var below []*visit
	for _, child := range above.below {
		name, ok := w.cfg.Dialect.Below(above.name, child)
		if ok && (strings.HasPrefix(name, w.Prefix) || w.cfg.Dialect.Literal() && strings.HasPrefix(w.Prefix, name+"/")) {
			below = append(below, &visit{name: name, path: above.path + "/" + child})
		}
	}
	if len(below) == 0 {
		return
	}
	byName := func(a, b *visit) int { return cmp.Compare(a.name, b.name) }
	slices.SortFunc(below, byName)
	// Names below a name are near it, so only the front of the list needs to be sorted again.
	end, _ := slices.BinarySearchFunc(w.next, below[len(below)-1], byName)
	w.next = slices.Insert(w.next, end, below...)
	slices.SortFunc(w.next[:end+len(below)], byName)
}

// read reads the queue of a znode.
func (w *Walk) read(ctx context.Context, v *visit) error {
	return w.Operate(ctx, func(d *Desk) error {
		z := Znode{d, v.path}
		names, err := z.children(ctx)
		if err != nil || v.name == "" { // the root, which does not belong to a lock
			v.below = names
			return err
		}
		found, _, rest := z.sort(names)
		if w.cfg.Dialect.Literal() { // in the other dialects no lock is below another
			v.below = rest
		}
		v.queue, err = z.read(ctx, found, nil)
		return err
	})
}
