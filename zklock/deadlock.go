package zklock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/zklock/internal/deadlock"
)

// DeadlockError is the error of an acquisition whose wait was in a circle of waits: each holds a lock that
// the one before it waits for, so none of them would have ended. A wait for what its own context carries is a
// circle of one. One wait of a circle fails, that of the process which was the last to notice that its wait
// lasts. The others go on. The caller should release what it holds, and may then begin again.
//
// A DeadlockError matches [ErrDeadlock] and [ErrNotAcquired].
//
// A client looks for circles when a wait has lasted for the URL's key deadlock_timeout, and only if the
// context of the acquisition carries a lock (see [Lock.Context]) or the acquisition is one of [All].
// docs/guarantees.md says what is found.
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

	Held    string // the name of the lock that it holds, or of All that it waits for too, and that the wait before it waits for
	Waiting string // the name of the lock that it waits for

	// Node is the name of the queue node with which it holds Held; "" if a caller of the request holds
	// that.
	Node string
}

// newDeadlockError returns the error of a circle of waits.
func newDeadlockError(circle []deadlock.Link) *DeadlockError {
	e := &DeadlockError{}
	for _, l := range circle {
		e.Cycle = append(e.Cycle, DeadlockLink{Host: l.Host, PID: l.PID, Label: l.Label, Trace: l.Trace, Held: l.Held, Waiting: l.Waiting, Node: l.Node})
	}
	return e
}

// Error implements error.
func (e *DeadlockError) Error() string {
	links := make([]string, len(e.Cycle))
	for i := range e.Cycle {
		l := &e.Cycle[i]
		links[i] = fmt.Sprintf("%s holds %s and waits for %s", processName(printable(l.Host), l.PID, l.Label), printable(l.Held), printable(l.Waiting))
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
