package zklock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/deadlock"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// nest notes that an acquisition whose context carries locks, or that wants several names, begins to wait,
// or waits for another contender than before.
func (a *acquisition) nest(ahead *local.Ahead) {
	if !a.nested {
		if a.nested = (carriesLocks(a.request.Ctx) || len(a.request.Wants) > 1) && a.request.Wants[0].Kind.Permits == 0; !a.nested {
			return
		}
	}
	a.client.deadlocks.Waits(a, ahead.Own, ahead.Nearest())
}

var _ deadlock.Waiter = (*acquisition)(nil)

// Wanted implements deadlock.Waiter.
func (a *acquisition) Wanted() *local.Request { return &a.request }

// Holds implements deadlock.Waiter. It leaves permits out: a request that waits for
// one of several does not wait for a certain holder.
func (a *acquisition) Holds() (holds []deadlock.Carried) {
	for l := range carriedBy(a.request.Ctx) {
		nodes, ok := l.handle.hold.Nodes()
		if !ok || l.Err() != nil || l.Mode() == Permit || l.handle.client.cfg.Place.Root != a.client.cfg.Place.Root {
			continue
		}
		holds = append(holds, deadlock.Carried{Nodes: nodes, Handle: l.handle, By: l.handle.client.deadlocks})
	}
	for c := range callersOf(a.request.Ctx) {
		if c.Mode != Permit {
			n := place.NodeID{Path: a.client.cfg.Place.Root + "/" + a.client.cfg.Place.Dialect.Encode(c.Name), Zxid: c.Token.Zxid, Mode: queue.Mode(c.Mode)}
			holds = append(holds, deadlock.Carried{Nodes: []local.NamedNode{{NodeID: n, Name: c.Name}}})
		}
	}
	return holds
}

// Deadlock implements deadlock.Waiter.
func (a *acquisition) Deadlock(circle []deadlock.Link) {
	e := newDeadlockError(circle)
	a.deadlock.Store(e)
	a.client.local.Cancel(&a.request, &errs.Victim{Err: e})
}

// reportDeadlock counts an acquisition that was ended because of a deadlock, and calls the hook.
func (a *acquisition) reportDeadlock(err error) {
	var d *DeadlockError
	if !a.nested || !errors.As(err, &d) || d != a.deadlock.Load() { // the cause of the caller's own context can be another's
		return
	}
	a.client.counters.deadlocks.Add(1)
	a.client.cfg.Place.Log().Warn("zklock: a deadlock was ended: this acquisition failed, and the others go on", "name", a.request.Name, "deadlock", d.Error())
	if hook := a.client.hooks.Deadlock; hook != nil {
		hook(a.request.Ctx, DeadlockEvent{Name: a.request.Name, Err: d})
	}
}

// heldByCaller returns an error if a caller holds a name so that it excludes the request, which would have to
// wait for it. A reader whose caller reads may get the lock. It waits if a writer does, and is a circle of one
// wait then.
func (a *acquisition) heldByCaller(ctx context.Context) error {
	var held []string
	for _, w := range a.request.Wants {
		for c := range callersOf(ctx) {
			if w.Name == c.Name && w.Kind.Mode.Excludes(queue.Mode(c.Mode)) {
				held = append(held, w.Name)
				break
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	return errs.Case(ErrDeadlock, fmt.Sprintf("a caller of this request holds %s until it gets the answer, and waiting for that would never end: release it before the call, or do not acquire it here", a.which(held)))
}

// which returns how an error calls some of the names of the request: the error of a request for one has that name.
func (a *acquisition) which(names []string) string {
	if len(a.request.Wants) == 1 {
		return "this lock"
	}
	return strings.Join(quoted(names), " and ")
}

// quoted returns the names as they stand in errors.
func quoted(names []string) []string {
	q := make([]string, len(names))
	for i, name := range names {
		q[i] = strconv.Quote(name)
	}
	return q
}
