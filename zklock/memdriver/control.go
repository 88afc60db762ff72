package memdriver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Expire makes the leader end a session now, as if it had expired. The session's
// client learns of it when the server closes the connection and the next server
// refuses the session. Without a leader, or without such a session, Expire does
// nothing.
func (e *Ensemble) Expire(sessionID int64) {
	e.enter()
	defer e.leave()
	if l := e.acting(); l != nil {
		if t := l.sessions[sessionID]; t != nil && !t.closing {
			l.end(t)
		}
	}
}

// ExpireAll makes the leader end all sessions now.
func (e *Ensemble) ExpireAll() {
	e.enter()
	defer e.leave()
	for _, id := range e.known() {
		if l := e.acting(); l != nil && !l.sessions[id].closing {
			l.end(l.sessions[id])
		}
	}
}

// KillConnection breaks a session's connection for both ends at once, and drops the
// messages under way on it. The session lives, and its client reconnects.
func (e *Ensemble) KillConnection(sessionID int64) {
	e.enter()
	defer e.leave()
	if s := e.sessions[sessionID]; s != nil && s.conn != nil {
		s.conn.reset()
	}
}

// Lag makes a server apply commits only after d has passed since it learned of them.
// Meanwhile it goes on answering from the state that it has. With a d of 0 it catches
// up at once.
func (e *Ensemble) Lag(server int, d time.Duration) {
	e.enter()
	defer e.leave()
	s := e.servers[server]
	s.lag = max(d, 0)
	if s.lag == 0 {
		s.catchUp()
		return
	}
	// From now on the server's applied state may differ from the proposed one.
	e.solo = false
	if l := s.leader; l != nil && l.head == s.tree {
		l.head = s.tree.clone()
	}
}

// Restart stops a server and starts it again a second later. Its data and its log are
// kept; its connections are lost.
func (e *Ensemble) Restart(server int) {
	e.enter()
	defer e.leave()
	s := e.servers[server]
	s.upAt = e.clock.now.Add(restartTime)
	for _, c := range slices.SortedFunc(maps.Keys(s.conns), byMade) {
		c.reset()
	}
	if k := s.learner; k != nil {
		k.reset()
	}
	if l := s.leader; l != nil {
		for len(l.learners) > 0 {
			l.learners[0].reset()
		}
	}
	s.look()
}

// MaxTimeout sets the longest session timeout that one server grants, like a
// maxSessionTimeout that differs between servers; 0 means the usual 20 ticks. It
// applies from the next handshake on.
func (e *Ensemble) MaxTimeout(server int, d time.Duration) {
	e.enter()
	defer e.leave()
	e.servers[server].maxTimeout = d
}

// SetSequence sets the number that the next sequential child of a znode gets. The
// last number is 2147483647, which a server then assigns again and again.
func (e *Ensemble) SetSequence(path string, next int32) error {
	return e.order(driver.Op{Kind: opSequence, Path: path, Version: next})
}

// Delete removes a znode as an operator with all rights would. It fails if the znode
// is missing or has children, or if the ensemble has no leader.
func (e *Ensemble) Delete(path string) error {
	return e.order(driver.DeleteOp(path, driver.AnyVersion))
}

// Break removes all contenders of a lock, holders and waiters, as an operator would:
// the ephemeral children of the lock's znode whose names end in a sequence number. It
// returns how many it has removed.
func (e *Ensemble) Break(lockPath string) int {
	e.enter()
	var paths []string
	if l := e.acting(); l != nil && validPath(lockPath) {
		if parent := l.head.find(lockPath); parent != nil {
			for _, n := range parent.sorted() {
				if n.ephemeral() && numbered(n.path) {
					paths = append(paths, n.path)
				}
			}
		}
	}
	e.leave()
	removed := 0
	for _, path := range paths {
		if e.Delete(path) == nil {
			removed++
		}
	}
	return removed
}

// numbered reports whether a name ends in a sequence number.
func numbered(name string) bool {
	const digits = 10
	if len(name) < digits {
		return false
	}
	for _, c := range name[len(name)-digits:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// order executes an operator's operation through the leader's log, and waits until
// the leader has applied it.
func (e *Ensemble) order(op driver.Op) error {
	name := op.Kind.String()
	if op.Kind == opSequence {
		name = "set sequence of"
	}
	if !validPath(op.Path) {
		return &opError{name, op.Path, driver.ErrBadArguments}
	}
	e.enter()
	l := e.acting()
	if l == nil {
		e.leave()
		return &opError{name, op.Path, fmt.Errorf("no leader: %w", driver.ErrNotSent)}
	}
	r := &request{wake: make(chan struct{})}
	l.orders = append(l.orders, r)
	l.submit(&txn{ops: []driver.Op{op}, results: make([]driver.OpResult, 1), origin: l.srv, request: r})
	e.leave()
	<-r.wake
	e.enter()
	l.settled(r)
	e.leave()
	if r.outcome != nil {
		return &opError{name, op.Path, r.outcome}
	}
	return nil
}
