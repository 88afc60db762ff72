package place

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Walk reads the queues of all names below the root that start with a prefix, a few at the same
// time. The names themselves are all in memory, as one list of the root has them all.
type Walk struct {
	// Prefix is what the names start with.
	Prefix string

	// Desk returns the session to read on: another one if the former is over.
	Desk func(context.Context) (*Desk, error)

	cfg   *Settings
	turns turns
	next  []*visit // in the byte order of their names
}

// visit is one znode below the root.
type visit struct {
	name, path string
	done       bool // it was read, and the fields below are set
	queue      Queue
	below      []string // children that are not contenders
	err        error
}

// Run calls yield for each name that is in use, in byte order, until that returns false. An
// error in yield concerns that name only, and Run goes on; an error that ends the walk is
// returned.
//
// A znode's name is in front of the names below it, so once the first visit was read, it is the
// next name: what is not known yet is below a visit.
func (w *Walk) Run(ctx context.Context, sh *Shared, yield func(name, path string, q Queue, err error) bool) error {
	w.cfg, w.turns = sh.cfg, make(turns, maxReads)
	root := &visit{path: w.cfg.Root}
	w.visit(ctx, root)
	if errors.Is(root.err, errs.ErrRootMissing) || errors.Is(root.err, driver.ErrNoNode) {
		return nil
	}
	if root.err != nil {
		return w.cfg.explain(root.err, w.cfg.Root)
	}
	for len(w.next) > 0 {
		v := w.next[0]
		if !v.done {
			w.visit(ctx, w.next[:min(len(w.next), maxReads)]...)
			continue // there may be a name in front of v now
		}
		w.next[0], w.next = nil, w.next[1:]
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(v.err, driver.ErrNoNode):
		case errors.Is(v.err, driver.ErrNoAuth), errors.Is(v.err, driver.ErrReplyTooLarge):
			if !yield(v.name, v.path, Queue{}, w.cfg.explain(v.err, v.path)) {
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

// visit reads those of some znodes that were not read, at the same time, and adds the znodes below
// them, as far as their names may start with the prefix, or lead to names that do.
func (w *Walk) visit(ctx context.Context, all ...*visit) {
	var readers sync.WaitGroup
	all = slices.DeleteFunc(slices.Clone(all), func(v *visit) bool { return v.done })
	for _, v := range all {
		readers.Go(func() { v.err = w.read(ctx, v) })
	}
	readers.Wait()
	before := len(w.next)
	for _, above := range all {
		for _, child := range above.below {
			name, ok := w.cfg.Dialect.Below(above.name, child)
			if ok && (strings.HasPrefix(name, w.Prefix) || w.cfg.Dialect.Literal() && strings.HasPrefix(w.Prefix, name+"/")) {
				w.next = append(w.next, &visit{name: name, path: above.path + "/" + child})
			}
		}
		above.done, above.below = true, nil
	}
	if len(w.next) > before {
		slices.SortFunc(w.next, func(a, b *visit) int { return cmp.Compare(a.name, b.name) })
	}
}

// read reads the queue of a znode, on another session if the session ends.
func (w *Walk) read(ctx context.Context, v *visit) error {
	for {
		desk, err := w.Desk(ctx)
		if err == nil {
			err = w.readOn(ctx, Znode{desk, v.path}, v)
		}
		if !errors.Is(err, errs.ErrSessionOver) {
			return err
		}
	}
}

func (w *Walk) readOn(ctx context.Context, z Znode, v *visit) error {
	if err := w.turns.take(ctx); err != nil {
		return err
	}
	names, err := z.children(ctx)
	w.turns.giveBack()
	if err != nil {
		return err
	}
	if v.name == "" { // the root, which does not belong to a lock
		v.below = names
		return nil
	}
	found, rest := z.sort(names)
	if w.cfg.Dialect.Literal() { // in the other dialects no lock is below another
		v.below = rest
	}
	v.queue, err = z.read(ctx, found, nil, w.turns)
	return err
}
