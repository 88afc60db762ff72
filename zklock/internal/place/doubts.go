package place

import (
	"container/list"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A server may read a create from a connection that the client has given up long ago, and apply it
// then. The client deletes such a node. It lists each name with such a create once a session timeout
// until the horizon has passed, and more and more rarely from then on, whatever its goroutines do with
// the name. What ZooKeeper 3.8 and 3.9 do with the rest of an old connection:
//
//   - When a session comes back to the same server, that closes the old connection, and reads no
//     more of it. When it comes back to another one, the leader refuses what the old server still
//     forwards: SessionTrackerImpl.checkSession compares the owners, for each operation of a multi.
//   - Two observers of one follower (observerMasterPort) have the same owner, which is that
//     follower, and so has the follower. There the create is applied after the session has moved.
//     It is applied as well while the session has not come back to any server.
//   - NIOServerCnxnFactory closes a connection that is silent for the session timeout, in buckets of
//     zookeeper.nio.sessionlessCnxnTimeout, 10 s by default. NettyServerCnxnFactory closes it when
//     TCP gives up, or when the session ends.
//   - A proxy may hold a request back for hours. So no time is the last at which a create can appear,
//     and only the end of the session ends its doubt.
//
// Invariants:
//   - A name leaves doubts only when a list that began after the horizon is refused, as without the
//     right to read, or when there are more than maxDoubts, or with the session, whose end removes
//     all its nodes.
//   - From the horizon on, the pause between two lists doubles, up to longestPause. So a node stays
//     for at most as long as its create was late, and never for longer than the longest pause.
//   - The names in each list of byPause are in the order in which they are listed next.
//   - lookOut runs while there are doubts, and only then; it ends with the session.
//
// What that costs is bounded: in the long run one list for each name and longestPause. A session of
// this client that lists the queue for another reason deletes the node at once: see Znode.strays.
type doubts struct {
	added   chan struct{}            // cap 1: wakes lookOut
	byPath  map[string]*list.Element // guarded by Desk.mu; of *doubt
	byPause [pauses]list.List        // guarded by Desk.mu; the pause of each list is twice that of the one before
	looking bool                     // guarded by Desk.mu; lookOut runs
}

// doubt is a name below which a create of the session may still be applied.
type doubt struct {
	path  string
	until time.Time // the horizon
	next  time.Time // when it is listed again
	pause int       // its list in byPause
}

const (
	// bucket is in which steps servers close silent connections, by default.
	bucket = 10 * time.Second

	// maxDoubts bounds the memory for doubts to some megabytes for each session.
	maxDoubts = 1 << 14

	// longestPause is the longest time between two lists of a name, if a session timeout is not longer.
	longestPause = 10 * time.Minute

	// pauses is how many pauses there are. They reach the longest one from a session timeout of
	// 300 ms on.
	pauses = 12

	// maxLookouts is how many doubtful names are listed at the same time.
	maxLookouts = session.MaxLone / 8
)

// addLocked adds a name, or renews it. If there are too many, the name that is listed most rarely goes,
// which is as a rule the least likely one. The desk's mu is held.
func (ds *doubts) addLocked(path string, now bool, every, horizon time.Duration) {
	at := time.Now()
	e := ds.byPath[path]
	switch {
	case e != nil && e.Value.(*doubt).pause > 0:
		ds.takeLocked(e)
		e = nil
	case e == nil && len(ds.byPath) == maxDoubts:
		for i := pauses - 1; len(ds.byPath) == maxDoubts; i-- {
			if rarest := ds.byPause[i].Back(); rarest != nil { // as a rule it has just been listed
				ds.takeLocked(rarest)
			}
		}
	}
	if e == nil {
		e = ds.putLocked(&doubt{path: path, next: at.Add(every)})
	}
	x := e.Value.(*doubt)
	if x.until = at.Add(horizon); now {
		x.next = at
		ds.byPause[0].MoveToFront(e)
	}
}

// putLocked puts a doubt behind those with the same pause. The desk's mu is held.
func (ds *doubts) putLocked(x *doubt) *list.Element {
	if ds.byPath == nil {
		ds.byPath = make(map[string]*list.Element)
	}
	e := ds.byPause[x.pause].PushBack(x)
	ds.byPath[x.path] = e
	return e
}

// takeLocked takes a doubt out. The desk's mu is held.
func (ds *doubts) takeLocked(e *list.Element) *doubt {
	x := e.Value.(*doubt)
	ds.byPause[x.pause].Remove(e)
	delete(ds.byPath, x.path)
	return x
}

// firstLocked returns the doubt that is listed next; nil if there is none. The desk's mu is held.
func (ds *doubts) firstLocked() (first *list.Element) {
	for i := range ds.byPause {
		if e := ds.byPause[i].Front(); e != nil && (first == nil || e.Value.(*doubt).next.Before(first.Value.(*doubt).next)) {
			first = e
		}
	}
	return first
}
