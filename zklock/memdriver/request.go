package memdriver

import (
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
)

// requestKind says what a client asks of its server.
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

	// requestSync catches up with the leader.
	requestSync

	// requestPing shows that the client lives.
	requestPing

	// requestSetWatches arms a client's watches again after a reconnect.
	requestSetWatches

	// requestCloseSession ends the session.
	requestCloseSession
)

// write reports whether the leader has to see the request.
func (k requestKind) write() bool {
	return k == requestWrite || k == requestMulti || k == requestSync || k == requestCloseSession
}

// request is one call of a client: what it asks and what it was told. Guarded
// by the ensemble's mutex until it is answered, then the caller's. One that was
// given up before stays the ensemble's: of that the caller may read outcome,
// answered and nothing else.
type request struct {
	kind requestKind
	path string
	ops  []driver.Op
	one  [1]driver.Op // backs ops of a requestWrite

	// Of a requestSetWatches: what the client had seen, and what it watches.
	since int64
	paths []string

	// The server's answer.
	zxid    int64 // of the server that answered, when it did
	err     error
	node    driver.Node
	names   []string
	results []driver.OpResult
	oneR    [1]driver.OpResult // backs results of a requestWrite
	ready   bool               // the server knows it; earlier requests may not be answered yet
	txn     txn

	// What the caller is told.
	sent     bool
	done     bool
	outcome  error // once done
	answered bool  // the outcome is the server's answer
	watch    <-chan driver.Event
	wake     chan struct{} // made by a caller that has to wait; closed when done
	direct   bool          // executed by a lone server within the call: nothing refers to it afterwards
}

// size is the length of the request as ZooKeeper's protocol encodes it.
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

// requests holds spent requests for the next calls.
var requests = sync.Pool{New: func() any { return new(request) }}

// newRequest returns an empty request.
func newRequest() *request { return requests.Get().(*request) }

// recycle returns a request whose caller has taken what it needs, if nothing
// else can refer to it.
func (r *request) recycle() {
	if r.direct && r.wake == nil {
		*r = request{}
		requests.Put(r)
	}
}

// own copies what belongs to the caller, who may change it as soon as the call
// returns, which may be before the request is executed.
func (r *request) own() {
	ops := make([]driver.Op, len(r.ops))
	for i, op := range r.ops {
		op.Data = cloneData(op.Data)
		op.ACL = append([]driver.ACL(nil), op.ACL...)
		ops[i] = op
	}
	r.ops = ops
}

// finish tells the caller the outcome.
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
