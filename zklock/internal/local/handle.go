package local

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// Handle is one caller's part of a hold, such as one of several readers'. It ends once: by a release
// or by a loss.
type Handle interface {
	// Begin sets the token. It is called once, under the hold's mutex, before the caller has the
	// handle, and locks nothing.
	Begin(t Token)

	// Acquired returns when the handle was made.
	Acquired() time.Time

	// Held reports whether it has not ended.
	Held() bool

	// Release ends the handle as released. It returns false if it had ended before.
	Release() bool

	// Lose ends the handle as lost. It returns false if it had ended before. All handles of a hold
	// get the same loss.
	Lose(l *Loss) bool

	// ReportLost reports the loss of a handle.
	ReportLost()

	// Revoke asks the caller to give the lock back.
	Revoke(reason string)

	// Parted is called when a handle was released that was not the last of its hold.
	Parted()

	// Age is called once in a while for a handle that is held for long.
	Age()
}

// Token is a fencing token. Zxid is that of the transaction that created the place, and Turn counts
// its holders.
type Token struct {
	Zxid int64
	Turn uint32
}

// Loss says why a hold was lost, and when this process noticed that, or when the lease ran out if
// that was earlier.
type Loss struct {
	Name  string
	Cause error
	At    time.Time
}

// Ahead is the contender that a request waits for.
type Ahead struct {
	Position int // how many contenders are ahead

	// Entry is the contender in ZooKeeper's queue. Without Data, only the name of its node is known.
	// Of a goroutine of this process, only the name and the mode are set, if it has a node.
	Entry place.Entry

	Own  *place.Place // with which the request waits; nil if it waits in the local queue only
	Path string       // of the znode in whose queue the contender is; "" if it is not in ZooKeeper's

	Local     bool         // it is a goroutine of this process, which the other fields describe
	Held      bool         // it holds the lock
	Candidacy bool         // it is meant to hold for long
	Origin    place.Origin // what others read of it; Since is not used
	Granted   time.Time    // when its place was granted, if it holds the lock
}

// behind returns what a goroutine sees that is so many positions behind one that waits for a.
func (a Ahead) behind(positions int) Ahead {
	a.Position += positions
	a.Own = nil
	return a
}

// Nearest identifies the contender if it is in ZooKeeper's queue.
func (a *Ahead) Nearest() place.NodeID {
	return place.NodeID{Path: a.Path, Node: a.Entry.Name, Zxid: a.Entry.Zxid, Mode: a.Entry.Kind.Mode}
}
