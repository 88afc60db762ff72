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

// DeadlockError is the error of an acquisition whose wait was in a circle of waits: each holds a lock that
// the one before it waits for, so none of them would have ended. One wait of a circle fails, that of the
// process which was the last to notice that its wait lasts. The others go on. The caller should release
// what it holds, and may then begin again.
//
// A DeadlockError matches [ErrDeadlock] and [ErrNotAcquired].
//
// A client looks for circles when a wait has lasted for the URL's key deadlock_timeout, and only if the
// context of the acquisition carries a lock: see [Lock.Context]. docs/guarantees.md says what is found.
type DeadlockError struct {
	// Cycle has the waits of the circle. The first is the one that failed. Each waits for the next, and
	// the last for the first.
	Cycle []DeadlockLink
}

// DeadlockLink is one wait of a circle. Its texts were written by the client that waits.
type DeadlockLink struct {
	Host  string // the host name of the process that waits
	PID   int    // its process id
	Label string // the label of the acquisition that waits: see [WithLabel]
	Trace string // the traceparent of that acquisition; "" if it has none

	Held    string // the name of the lock that it holds, and that the wait before it waits for
	Waiting string // the name of the lock that it waits for

	// Node is the name of the queue node with which it holds Held; "" if a caller of the request holds
	// that.
	Node string
}

// Error implements error.
func (e *DeadlockError) Error() string {
	links := make([]string, len(e.Cycle))
	for i := range e.Cycle {
		l := &e.Cycle[i]
		by := obstacle{host: l.Host, pid: int32(l.PID), label: l.Label}
		links[i] = fmt.Sprintf("%s holds %s and waits for %s", by.name(), printable(l.Held), printable(l.Waiting))
	}
	return "deadlock: " + strings.Join(links, "; ")
}

// Is makes a DeadlockError match ErrDeadlock and ErrNotAcquired.
func (e *DeadlockError) Is(target error) bool {
	return target == ErrDeadlock || target == ErrNotAcquired
}

// printable returns a text of another client without quotes if it has nothing to escape.
func printable(s string) string {
	if quoted := strconv.Quote(s); quoted[1:len(quoted)-1] != s || strings.ContainsAny(s, " ;") {
		return quoted
	}
	return s
}

// nest notes that an acquisition whose context carries locks begins to wait, or waits for another
// contender than before.
func (a *acquisition) nest(ahead *local.Ahead) {
	if !a.nested {
		c, _ := a.Ctx.Value(carriedKey{}).(*carriedLock)
		if a.nested = c != nil && a.Wants[0].Kind.Permits == 0; !a.nested {
			return
		}
	}
	a.client.deadlocks.Waits(a, ahead.Own, ahead.Nearest())
}

var _ deadlock.Waiter = (*acquisition)(nil)

// Wanted implements deadlock.Waiter.
func (a *acquisition) Wanted() *local.Request { return &a.Request }

// Holds implements deadlock.Waiter. Permits are left out: a wait for one of several is no wait for a
// certain holder.
func (a *acquisition) Holds() (holds []deadlock.Hold) {
	for l := range carriedBy(a.Ctx) {
		nodes, ok := l.handle.hold.Nodes()
		if !ok || l.Err() != nil || l.Mode() == Permit || !strings.HasPrefix(nodes[0].Path, a.client.cfg.Root+"/") {
			continue
		}
		holds = append(holds, deadlock.Hold{Nodes: nodes, Handle: l.handle, By: l.handle.client.deadlocks})
	}
	for c := range callersOf(a.Ctx) {
		if c.Mode != Permit {
			n := place.Contender{Path: a.client.cfg.Root + "/" + a.client.cfg.Dialect.Encode(c.Name), Zxid: c.Token.Zxid, Mode: queue.Mode(c.Mode)}
			holds = append(holds, deadlock.Hold{Nodes: []local.Node{{Contender: n, Name: c.Name}}})
		}
	}
	return holds
}

// Deadlock implements deadlock.Waiter.
func (a *acquisition) Deadlock(circle []deadlock.Link) {
	e := &DeadlockError{}
	for _, l := range circle {
		e.Cycle = append(e.Cycle, DeadlockLink{Host: l.Host, PID: l.PID, Label: l.Label, Trace: l.Trace, Held: l.Held, Waiting: l.Waiting, Node: l.Node})
	}
	a.client.local.Cancel(&a.Request, e)
}

// reportDeadlock counts an acquisition that was ended because of a deadlock, and calls the hook.
func (a *acquisition) reportDeadlock(err error) {
	var d *DeadlockError
	if !a.nested || !errors.As(err, &d) {
		return
	}
	a.client.counters.deadlocks.Add(1)
	a.client.cfg.Log().Warn("zklock: a deadlock was ended: this acquisition failed, and the others go on", "name", a.Name, "deadlock", d.Error())
	if hook := a.client.hooks.Deadlock; hook != nil {
		hook(a.Ctx, DeadlockEvent{Name: a.Name, Err: d})
	}
}

// CallerLock is a lock that a caller of this process holds while it waits for the answer to its request.
type CallerLock struct {
	Name  string
	Mode  Mode
	Token Token
}

// ContextWithCallerLocks returns a context that is derived from ctx and carries locks that a caller in
// another process holds until it gets the answer to its request, as a [fence.Sequencer] of the request
// says. The adapters' option WithCallerLocks uses it for callers that they trust.
//
// An acquisition that would have to wait for such a lock fails at once with [ErrDeadlock]. Other waits of
// the context are found in circles of waits: see [DeadlockError]. Reenter does not join a caller's lock.
//
// The locks have to be of the root and the ensemble of the client that acquires with the context, and
// they have to be held until the work of the context is done: else an acquisition may fail that had only
// to wait.
func ContextWithCallerLocks(ctx context.Context, locks ...CallerLock) context.Context {
	if len(locks) == 0 {
		return ctx
	}
	outer, _ := ctx.Value(carriedKey{}).(*carriedLock)
	return context.WithValue(ctx, carriedKey{}, &carriedLock{callers: locks, outer: outer})
}

// callersOf returns the locks of callers that a context carries.
func callersOf(ctx context.Context) func(yield func(CallerLock) bool) {
	return func(yield func(CallerLock) bool) {
		for c, _ := ctx.Value(carriedKey{}).(*carriedLock); c != nil; c = c.outer {
			for _, l := range c.callers {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// errCallerHolds is why an acquisition fails that would have to wait for a lock of its caller.
var errCallerHolds = errs.Case(ErrDeadlock, "a caller of this request holds this lock until it gets the answer, and waiting for it would never end: release it before the call, or do not acquire it here")

// heldByCaller returns errCallerHolds if a caller holds a name so that the request would have to wait.
func (a *acquisition) heldByCaller(ctx context.Context) error {
	for c := range callersOf(ctx) {
		for _, w := range a.Wants {
			if w.Name == c.Name && w.Kind.Mode.Excludes(queue.Mode(c.Mode)) {
				return errCallerHolds
			}
		}
	}
	return nil
}
