package zklock

import (
	"fmt"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Contender is a queue node as other clients see it: a client that holds a name or waits for it.
// Goroutines of one client share a node, so there is one Contender for all of them. Label, Trace
// and Since are those of the acquisition that created the node. A hand-over inside the process
// writes nothing to ZooKeeper and leaves them as they are. A sixth of the session timeout after
// the node's first grant the client writes those of the holder at that moment; earlier, if a
// writer's node becomes a reader's. A node that may be kept has none: see Kept. [Lock.SetLabel]
// replaces the Label.
type Contender struct {
	Node    string // the name of the queue node, below the lock's znode
	Host    string // the contender's host; "" if its client leaves that out: see [WithIdentity]
	Label   string // the text that the acquisition gave with WithLabel, or the holder with Lock.SetLabel
	Trace   string // the traceparent that the acquisition's client got from its Inject hook
	PID     int    // the contender's process id; 0 if its client leaves that out
	Mode    Mode   // how the contender holds the lock, or wants to hold it
	Held    bool   // whether it is the contender's turn, judged by the queue alone
	Foreign bool   // whether another library created the node, or a client of another dialect

	// Since is when the acquisition began, by the contender's clock. In a WaitEvent
	// about a holder of the same process, it is when the process got the lock.
	Since time.Time

	// Session is the id of the session that the node belongs to; 0 if the client may not
	// read a node of another dialect. ZooKeeper's own tools print it in hexadecimal.
	Session int64

	// Zxid is the id of the transaction that created the node, and so the Zxid of the
	// holder's [Token]. Together with Node it identifies one contender for all time; Node
	// alone may be used again when the name's znode was removed. 0 as Session.
	Zxid int64

	// Kept reports whether the client may keep the node between uses, as the URL's key keep
	// lets it. Only that client knows whether the lock is in use at the moment. Label, Trace
	// and Since are empty then, or those of the last holder that called SetLabel, which may
	// have gone. When the client notices another contender while the lock is in use, it
	// writes those of the holder, and Kept is false from then on. It notices that at once if
	// it has kept the node before, and otherwise a sixth of the session timeout after the grant.
	Kept bool

	// Late is how much later than it was sent the node was created, by the clocks of its process
	// and of the servers; 0 if that is less than 5 s, or not known. Then the caller has given up,
	// as a rule, and its client deletes the node within a session timeout of its creation. A
	// process whose clock is behind has such nodes, too.
	Late time.Duration

	// Stray reports that this client has made the node, and that no lock and no waiter of the
	// client owns it: a server has carried a request out after its caller had given up. The
	// client deletes the node when it sees that. Other clients cannot know it: see Late.
	Stray bool

	// Candidacy reports whether the contender waits and holds for long on purpose, as an election's
	// candidates and its leader do: see [WithCandidacy]. It is false for contenders of another dialect.
	Candidacy bool

	// Revocable reports whether the acquisition that is described has [WithRevocable]: the holder gets the
	// request of a [Client.Revoke]. Others go on as if there were none, and false may also mean that it is not known:
	// of a node that may be kept, and of another library's.
	Revocable bool

	// Revoked is the reason that an operator has given when asking the holder to give the lock
	// back; "" if none has asked. See [Client.Revoke].
	Revoked string
}

// leastLate is the least Late that a Contender has: clocks differ, and many requests are slow.
const leastLate = 5 * time.Second

// contenderOf returns the Contender for an entry of a queue.
func contenderOf(e place.Entry) Contender {
	c := nodeOf(e)
	d, ok := queue.Decode(e.Data)
	if !ok {
		c.Foreign = true
		return c
	}
	c.Host, c.PID, c.Label, c.Trace, c.Kept, c.Revoked = d.Host, d.PID, d.Label, d.Trace, d.Keep, d.Revoked
	if late := time.Duration(d.Late(e.Created)) * time.Millisecond; late >= leastLate {
		c.Late = late
	}
	c.Candidacy, c.Revocable = d.Candidacy, d.Revocable
	c.Foreign = d.Revoked == queue.CuratorRevokes && !e.Ours()
	if d.Since > 0 {
		c.Since = time.UnixMilli(d.Since)
	}
	return c
}

// nodeOf returns the fields of a Contender that do not depend on the node's data.
func nodeOf(e place.Entry) Contender {
	return Contender{Node: e.Name, Mode: Mode(e.Kind.Mode), Session: e.Session, Zxid: e.Zxid, Stray: e.Stray}
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

// processName returns how an error names a client's process. The texts were written by that client, so
// they are escaped.
func processName(host string, pid int, label string) string {
	name := "another client"
	quoted := strconv.Quote(host)
	switch host := quoted[1 : len(quoted)-1]; {
	case host != "" && pid != 0:
		name = fmt.Sprintf("%s/%d", host, pid)
	case host != "":
		name = host
	case pid != 0:
		name = fmt.Sprintf("process %d", pid)
	}
	return labelled(name, label)
}

// labelled adds a label to a name.
func labelled(name, label string) string {
	if label == "" {
		return name
	}
	return name + " " + strconv.Quote(label)
}
