package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// maxAll is the most names whose places one transaction can take.
const maxAll = 128

// All combines several mutexes, readers and writers into one lock. They are acquired
// together, with one token, one deadline and one round trip, or not at all. A name
// that is given twice is acquired once, as a writer if one of the two is.
//
// One transaction creates the queue nodes of all names. So two requests that share
// names have the same order in the queues of all shared names, and never wait for
// each other in a circle, in whatever order the names are given. While a request
// waits for one name, its nodes stay in the queues of the others. A lock on two or
// more names takes no part in hand-over inside the process.
//
// All of one name behaves like that name's own lock: it is handed over inside the
// process, and a writer's can be downgraded.
//
// All takes 1 to 128 names, all of one Client. It does not take semaphores and other
// Alls. Acquiring anything else fails with [ErrConflict], and an All of a nil lock with [ErrMisuse].
func All(acquirers ...Acquirer) *Group {
	g := &Group{}
	g.err = g.add(acquirers)
	// A writer stands before a reader of the same name, and is what stays of the two.
	slices.SortFunc(g.wants, func(v, w place.Want) int {
		return cmp.Or(cmp.Compare(v.Name, w.Name), strongestFirst(v.Kind.Mode, w.Kind.Mode))
	})
	g.wants = slices.CompactFunc(g.wants, func(v, w place.Want) bool { return v.Name == w.Name })
	if n := len(g.wants); n > maxAll && g.err == nil {
		g.err = errs.Case(errs.ErrConflict, fmt.Sprintf("All of %d names, at most %d can be acquired together", n, maxAll))
	}
	return g
}

// strongestFirst orders modes that All takes: one that covers another stands before it. Of two modes, one
// covers the other: queue.Row has that rule.
func strongestFirst(v, w queue.Mode) int {
	switch {
	case v == w:
		return 0
	case v.Covers(w):
		return -1
	}
	return 1
}

// Group is several locks that are acquired together; see [All]. Like a [Mutex] it has no state.
type Group struct{ lockable }

var _ Acquirer = (*Group)(nil)

func (g *Group) lock() *lockable {
	if g == nil {
		return nil
	}
	return &g.lockable
}

// Name returns the names, sorted and joined by commas.
func (g *Group) Name() string { return g.lock().name() }

// Path returns the paths of the locks' znodes, in the order of the names and joined by commas.
func (g *Group) Path() string { return g.lock().path() }

// Acquire waits until the caller holds all of the locks; see [Acquirer].
func (g *Group) Acquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return g.lock().acquire(ctx, opts, false)
}

// TryAcquire acquires the locks if all of them are free; see [Acquirer].
func (g *Group) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Lock, error) {
	return g.lock().acquire(ctx, opts, true)
}

// ofThisPackage reports whether a type of this package is an Acquirer's: one of another package may have
// an Acquire of its own, which All would not call.
func ofThisPackage(a Acquirer) bool {
	t := reflect.TypeOf(a)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == reflect.TypeFor[lockable]().PkgPath()
}

// add adds what the locks of an All want. The names are not sorted yet, and may be there twice.
func (l *lockable) add(acquirers []Acquirer) error {
	if len(acquirers) == 0 {
		return errs.Case(errs.ErrConflict, "All of no locks: pass at least one")
	}
	// The client is needed even if something else is wrong: it calls its hooks.
	for _, acquirer := range acquirers {
		if l.client == nil && acquirer != nil {
			l.client = acquirer.lock().knownClient()
		}
	}
	for _, acquirer := range acquirers {
		if acquirer == nil {
			return errAllOfNil
		}
		d := acquirer.lock()
		if err := d.check(); err != nil { // of any type: it may be a refusal that an adapter has wrapped
			if errors.Is(err, errNilAcquirer) {
				err = errAllOfNil
			}
			return err
		}
		if _, group := acquirer.(*Group); group || !d.mode().InAll() || !ofThisPackage(acquirer) {
			return errs.Case(errs.ErrConflict, fmt.Sprintf("All takes mutexes, readers and writers, not %T", acquirer))
		}
		if d.client != l.client {
			return errs.Case(errs.ErrConflict, fmt.Sprintf("All takes locks of one Client: %q belongs to another", d.name()))
		}
		l.wants = append(l.wants, d.wants[0])
	}
	return nil
}
