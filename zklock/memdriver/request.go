package memdriver

import (
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
)

// requestKind is the kind of a client's request.
type requestKind uint8

const (
	// requestWrite is one operation that goes through the log.
	requestWrite requestKind = iota

	// requestMulti is a transaction of any number of operations.
	requestMulti

	// requestGet reads a node.
	requestGet

	// requestWatch reads a node and arms a watch.
	requestWatch

	// requestChildren lists a node's children.
	requestChildren

	// requestWatchChildren lists a node's children and arms a watch on them.
	requestWatchChildren

	// requestWatchExists asks whether a node exists and arms a watch.
	requestWatchExists

	// requestSync waits until the server has caught up with the leader.
	requestSync

	// requestPing shows that the client is alive.
	requestPing

	// requestSetWatches arms a client's watches again after a reconnect.
	requestSetWatches

	// requestAuth adds an identity to the connection.
	requestAuth

	// requestCloseSession ends the session.
	requestCloseSession
)

// write reports whether the leader must see the request.
func (k requestKind) write() bool {
	return k == requestWrite || k == requestMulti || k == requestSync || k == requestCloseSession
}

// watch reports whether the request arms a watch.
func (k requestKind) watch() bool {
	return k == requestWatch || k == requestWatchChildren || k == requestWatchExists
}

// list returns the client's list for the watch that an answered request has armed.
func (r *request) list() watchList {
	switch {
	case r.kind == requestWatchChildren:
		return onChildren
	case r.missing:
		return onCreation
	}
	return onData
}

// request is one call of a client, with its arguments and its outcome. It is guarded
// by the ensemble's mutex until it is answered, and belongs to the caller afterwards.
// If the caller gives it up before, it stays the ensemble's, and the caller may read
// only outcome and answered.
type request struct {
	kind requestKind
	path string
	ops  []driver.Op
	one  [1]driver.Op // memory for ops of a requestWrite

	// For a requestSetWatches: the newest zxid that the client has seen, and what it
	// watches.
	since   int64
	watches []awaited

	user, password string // of a requestAuth

	// The server's answer.
	zxid    int64 // the zxid of the server that answered, at that moment
	err     error
	node    driver.Node
	names   []string
	missing bool // the answer to a requestWatchExists
	results []driver.OpResult
	oneR    [1]driver.OpResult // memory for results of a requestWrite
	ready   bool               // the server has the answer; earlier requests may not be answered yet
	txn     txn

	// The outcome for the caller.
	sent     bool
	done     bool
	outcome  error // valid when done is set
	answered bool  // the outcome is the server's answer
	watch    <-chan driver.Event
	wake     chan struct{} // made by a caller that has to wait; closed when done is set
	direct   bool          // executed by a lone server within the call: nothing refers to the request afterwards
}

// size returns the length of the request in the encoding of ZooKeeper's protocol.
func (r *request) size() int {
	const header, word = 8, 4
	n := header + word + len(r.path)
	for i := range r.ops {
		op := &r.ops[i]
		n += 9 + word + len(op.Path) + word + len(op.Data) + 2*word
		for j := range op.ACL {
			n += 3*word + len(op.ACL[j].Scheme) + len(op.ACL[j].ID)
		}
	}
	return n
}

// requests keeps used requests for the next calls.
var requests = sync.Pool{New: func() any { return new(request) }}

// newRequest returns an empty request.
func newRequest() *request { return requests.Get().(*request) }

// recycle keeps a request for reuse, if nothing else can refer to it. The caller must
// have taken what it needs from it.
func (r *request) recycle() {
	if r.direct && r.wake == nil {
		*r = request{}
		requests.Put(r)
	}
}

// own copies the arguments, which belong to the caller. The caller may change them as
// soon as the call returns, and the request may be executed later than that.
func (r *request) own() {
	ops := make([]driver.Op, len(r.ops))
	for i, op := range r.ops {
		op.Data = cloneData(op.Data)
		op.ACL = append([]driver.ACL(nil), op.ACL...)
		ops[i] = op
	}
	r.ops = ops
}

// finish gives the caller the outcome.
func (r *request) finish(err error) {
	if r.done {
		return
	}
	r.done = true
	r.outcome = err
	if r.wake != nil {
		close(r.wake)
	}
}
