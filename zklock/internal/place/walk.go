package place

import (
	"container/heap"
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Walk reads the queues of all names below the root that start with a prefix. It reads maxAhead
// queues ahead of its caller, so that round trips overlap. The names themselves are all in
// memory, as one list of the root has them all.
type Walk struct {
	// Prefix is what the names start with.
	Prefix string

	// Desk returns the session to read on: another one if the former is over.
	Desk func(context.Context) (*Desk, error)

	cfg     *Settings
	turns   turns
	waiting visits // not begun
	begun   visits // at most maxAhead, and one more after a name in front of them has appeared
}

// maxAhead is how many names are read ahead of the caller.
const maxAhead = maxReads

// visit is one znode below the root.
type visit struct {
	name, path string
	done       chan struct{} // closed once the fields below are set
	queue      Queue
	below      []string // children that are not contenders
	err        error
}

// visits is a heap of visits in the byte order of their names. A znode's name is in front of the
// names below it, so the first of all visits is the next name: what is not known yet is below a
// visit.
type visits []*visit

func (v visits) Len() int           { return len(v) }
func (v visits) Less(i, j int) bool { return v[i].name < v[j].name }
func (v visits) Swap(i, j int)      { v[i], v[j] = v[j], v[i] }
func (v *visits) Push(x any)        { *v = append(*v, x.(*visit)) }
func (v *visits) Pop() any {
	last := len(*v) - 1
	x := (*v)[last]
	(*v)[last] = nil
	*v = (*v)[:last]
	return x
}

// Run calls yield for each name that is in use, in byte order, until that returns false. An
// error in yield concerns that name only, and Run goes on; an error that ends the walk is
// returned. No request is under way when Run returns.
func (w *Walk) Run(ctx context.Context, sh *Shared, yield func(name, path string, q Queue, err error) bool) error {
	w.cfg, w.turns = sh.cfg, make(turns, maxReads)
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
	for {
		w.begin(ctx, &readers)
		if len(w.begun) == 0 {
			return nil
		}
		v := heap.Pop(&w.begun).(*visit)
		select {
		case <-v.done:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.add(v)
		switch {
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
}

// add queues the znodes below one that was read, as far as their names may start with the
// prefix, or lead to names that do.
func (w *Walk) add(above *visit) {
	for _, child := range above.below {
		name, ok := w.cfg.Dialect.Below(above.name, child)
		if !ok || !strings.HasPrefix(name, w.Prefix) && !(w.cfg.Dialect.Literal() && strings.HasPrefix(w.Prefix, name+"/")) {
			continue
		}
		heap.Push(&w.waiting, &visit{name: name, path: above.path + "/" + child, done: make(chan struct{})})
	}
	above.below = nil
}

// begin begins to read the first names that are waiting, maxAhead in all, and in any case
// the next one.
func (w *Walk) begin(ctx context.Context, readers *sync.WaitGroup) {
	for len(w.waiting) > 0 && (len(w.begun) < maxAhead || w.waiting[0].name < w.begun[0].name) {
		v := heap.Pop(&w.waiting).(*visit)
		heap.Push(&w.begun, v)
		readers.Go(func() {
			defer close(v.done)
			v.err = w.read(ctx, v)
		})
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
