package memdriver

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// role is the role that a server believes to have; other servers may see it
// differently.
type role uint8

const (
	// looking servers have no leader and no clients.
	looking role = iota

	// following servers have a leader, as far as they know.
	following

	// leading servers have a majority, as far as they know.
	leading
)

// server is one server of the ensemble. Its state is what it knows itself: tree is
// the prefix of the log that it has applied, and role is the role as far as it has
// noticed.
type server struct {
	e     *Ensemble
	index int
	role  role

	tree    *tree
	log     []*txn // accepted transactions that are not known to be committed; kept when the role changes
	commits []*txn // committed transactions that are not applied yet, in order
	lag     time.Duration
	epoch   int64     // the newest epoch whose leader it has accepted; it follows no leader of an older one
	applyAt time.Time // when the newest of commits may be applied

	conns    map[*conn]struct{}
	sessions map[int64]*conn // by session id
	watches  map[watched][]*conn

	leader  *leadership // while leading
	learner *learner    // while following: the link to its leader
	heard   time.Time   // while following: when the last message of the leader arrived
	guard   *event      // checks heard; nil while the ensemble is idle
	search  *event      // while looking: the next try
	touched map[int64]time.Duration

	disk       disk
	upAt       time.Time     // when it is up again after a restart
	maxTimeout time.Duration // the longest session timeout; 0 for 20 ticks
}

// addr returns the address that sessions report as their server.
func (s *server) addr() string { return "mem-" + strconv.Itoa(s.index) }

// serving reports whether the server accepts clients.
func (s *server) serving() bool { return s.role != looking }

// touch records that a session's client was heard. A leader counts that at once, a
// follower reports it in its answer to the leader's next ping.
func (s *server) touch(id int64, timeout time.Duration) {
	if s.role == leading {
		s.leader.touch(id, timeout)
		return
	}
	s.touched[id] = timeout
}

// forward sends a transaction to the leader, or to the server that was the leader.
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

// commit records that tx is committed. It applies tx when the server has caught up to
// it.
func (s *server) commit(tx *txn) {
	if len(s.commits) == 0 && s.lag == 0 {
		s.apply(tx)
		return
	}
	s.commits = append(s.commits, tx)
	s.applyAt = later(s.applyAt, s.e.clock.now.Add(s.lag))
	s.e.after(s.applyAt.Sub(s.e.clock.now), func() {
		// The queue may have been emptied since: by catchUp, or because the server has become a
		// follower again and copied the state of its leader.
		if len(s.commits) > 0 && s.commits[0] == tx {
			s.commits = s.commits[1:]
			s.apply(tx)
		}
	})
}

// catchUp applies all committed transactions.
func (s *server) catchUp() {
	for len(s.commits) > 0 {
		tx := s.commits[0]
		s.commits = s.commits[1:]
		s.apply(tx)
	}
}

// apply executes a committed transaction on this server and fires its watches. If the
// request came from a client of this server, it answers the client.
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

// read answers a request from this server's own tree, even if the tree is out of
// date.
func (s *server) read(c *conn, r *request) {
	switch r.kind {
	case requestPing:
		s.e.ops.Pings++
	case requestSetWatches:
		s.rearm(c, r)
	case requestAuth:
		id, err := digestIdentity(r.user, r.password)
		if r.err = err; err == nil {
			c.ids = append(c.ids, id)
		}
	default:
		s.readNode(c, r)
	}
	r.zxid = s.tree.zxid
}

func (s *server) readNode(c *conn, r *request) {
	s.e.ops.countRead(r.kind)
	n := s.tree.find(r.path)
	switch {
	case r.kind == requestWatchExists: // needs no permission
		r.missing = n == nil
	case n == nil:
		r.err = driver.ErrNoNode
	case !permits(n.acl, driver.PermRead, c.ids):
		r.err = driver.ErrNoAuth
	}
	if r.err != nil {
		return
	}
	if n != nil {
		r.node.Stat = n.stat()
	}
	switch r.kind {
	case requestChildren, requestWatchChildren:
		r.names = make([]string, 0, len(n.children))
		for name := range n.children {
			r.names = append(r.names, name)
		}
	case requestGet, requestWatch:
		r.node.Data = cloneData(n.data)
	}
	if r.kind.watch() {
		s.watch(c, watched{r.path, r.kind == requestWatchChildren})
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
