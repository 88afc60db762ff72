package memdriver

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// role is what a server takes itself for, which others may see differently.
type role uint8

const (
	// looking servers have no leader and no clients.
	looking role = iota

	// following servers have a leader, as far as they know.
	following

	// leading servers have a majority, as far as they know.
	leading
)

// server is one server of the ensemble. What it knows is its own: its tree is
// the prefix of the log that it has applied, and its role what it has noticed.
type server struct {
	e     *Ensemble
	index int
	role  role

	tree    *tree
	log     []*txn // accepted, not known to be committed; survives the role
	commits []*txn // committed, not applied yet, in order
	lag     time.Duration
	epoch   int64     // newest that it has accepted a leader of; it follows none of an older one
	applyAt time.Time // when the newest of commits may be applied

	conns    map[*conn]struct{}
	sessions map[int64]*conn // by session id
	watches  map[string][]*conn

	leader  *leadership // while leading
	learner *learner    // while following: the link to its leader
	heard   time.Time   // while following: of the leader
	guard   *event      // checks heard; nil while the ensemble is idle
	search  *event      // while looking: the next try
	touched map[int64]time.Duration

	upAt       time.Time     // when it is back after a restart
	maxTimeout time.Duration // of sessions; 0 for 20 ticks
}

// addr is what sessions report as their server.
func (s *server) addr() string { return "mem-" + strconv.Itoa(s.index) }

// serving reports whether clients are welcome.
func (s *server) serving() bool { return s.role != looking }

// touch notes that a session's client has been heard. A leader counts it at
// once, a follower in its answer to the leader's next ping.
func (s *server) touch(id int64, timeout time.Duration) {
	if s.role == leading {
		s.leader.touch(id, timeout)
		return
	}
	s.touched[id] = timeout
}

// forward hands a transaction to the leader, or to where the leader was.
func (s *server) forward(tx *txn) {
	if s.role == leading {
		s.leader.submit(tx)
		return
	}
	link := s.learner
	link.up.send(func() {
		if link.leaderOpen {
			link.leader.submit(tx)
		}
	})
}

// commit takes note that tx is committed, and applies it when the server has
// caught up so far.
func (s *server) commit(tx *txn) {
	if len(s.commits) == 0 && s.lag == 0 {
		s.apply(tx)
		return
	}
	s.commits = append(s.commits, tx)
	s.applyAt = later(s.applyAt, s.e.clock.now.Add(s.lag))
	s.e.after(s.applyAt.Sub(s.e.clock.now), func() {
		// A server that starts anew applies everything it has: then the
		// transaction is not in the queue any more.
		if len(s.commits) > 0 && s.commits[0] == tx {
			s.commits = s.commits[1:]
			s.apply(tx)
		}
	})
}

// catchUp applies all that is committed.
func (s *server) catchUp() {
	for len(s.commits) > 0 {
		tx := s.commits[0]
		s.commits = s.commits[1:]
		s.apply(tx)
	}
}

// apply executes a committed transaction here, lets the watches go, and answers
// the client that asked for it if it is a client of this server.
func (s *server) apply(tx *txn) {
	if tx.kind != txnSync {
		if s.leader == nil || s.leader.head != s.tree {
			s.tree.replay(tx)
		}
		for i := range s.tree.changes {
			s.fire(&s.tree.changes[i])
		}
	}
	if tx.origin == s {
		switch {
		case tx.conn != nil:
			tx.conn.settle(tx)
		case tx.request != nil:
			tx.request.finish(tx.err)
		}
	}
	if tx.kind == txnCloseSession && tx.err == nil {
		if c := s.sessions[tx.session]; c != nil {
			c.hangUp()
		}
	}
}

// read answers a request from this server's own tree, however old that is.
func (s *server) read(c *conn, r *request) {
	switch r.kind {
	case requestPing:
		s.e.ops.Pings++
	case requestSetWatches:
		s.rearm(c, r)
	default:
		s.readNode(c, r)
	}
	r.zxid = s.tree.zxid
}

func (s *server) readNode(c *conn, r *request) {
	n := s.tree.find(r.path)
	switch {
	case n == nil:
		r.err = driver.ErrNoNode
	case !permits(n.acl, driver.PermRead, c.client.ids):
		r.err = driver.ErrNoAuth
	}
	switch r.kind {
	case requestChildren:
		s.e.ops.Children++
	case requestWatch:
		s.e.ops.Watches++
	default:
		s.e.ops.Gets++
	}
	if r.err != nil {
		return
	}
	r.node.Stat = n.stat()
	if r.kind == requestChildren {
		r.names = make([]string, 0, len(n.children))
		for name := range n.children {
			r.names = append(r.names, name)
		}
		return
	}
	r.node.Data = cloneData(n.data)
	if r.kind == requestWatch {
		s.watch(c, r.path)
	}
}

// dropClients ends the connections of all clients.
func (s *server) dropClients() {
	for _, c := range slices.SortedFunc(maps.Keys(s.conns), byMade) {
		c.hangUp()
	}
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
