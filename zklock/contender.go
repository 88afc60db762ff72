package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Contender is a queue node as others see it: a process that holds a name or
// waits for it. Goroutines that queue behind one node inside a process do not
// show. Nor does a hand-over inside a process, which writes nothing: Label, Trace
// and Since stay those of the acquisition that the node was made for, as long as
// the process keeps it.
type Contender struct {
	// Node is the name of the queue node, below the lock's znode.
	Node string

	// Host is the contender's host, if it told.
	Host string

	// Label is the text given with WithLabel by whom the node was made for.
	Label string

	// Trace is the traceparent of the request that took the place in the queue.
	Trace string

	// PID is the contender's process id, if it told.
	PID int

	// Mode is how the lock is held or wanted.
	Mode Mode

	// Held says that it is the contender's turn, by its place in the queue.
	Held bool

	// Foreign says that the node was made by another library, or in another
	// dialect than the client's.
	Foreign bool

	// Since is when the place was taken, by the contender's clock.
	Since time.Time
}

// contenderOf makes a Contender of a queue node and its data.
func contenderOf(q queue.Node, data []byte) Contender {
	c := Contender{Node: q.Name, Mode: Mode(q.Kind.Mode)}
	d, ok := queue.Decode(data)
	if !ok {
		c.Foreign = true
		return c
	}
	c.Host, c.PID, c.Label, c.Trace = d.Host, d.PID, d.Label, d.Trace
	if d.Since > 0 {
		c.Since = time.UnixMilli(d.Since)
	}
	c.Mode = Mode(queue.Effective(q.Kind, d).Mode)
	return c
}

// Mode says how a lock is held.
type Mode uint8

const (
	// Exclusive locks are held alone.
	Exclusive = Mode(queue.Exclusive)

	// Shared locks are held together with other shared ones.
	Shared = Mode(queue.Shared)

	// Permit is one of a semaphore's permits.
	Permit = Mode(queue.Permit)
)

// String returns the mode's name in lower case.
func (m Mode) String() string { return queue.Mode(m).String() }
