package memdriver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Expire ends a session as if it had been silent for its timeout, but at once. The session's
// client learns first that the session has expired. The leader ends the session, and so removes
// its nodes, when the client has closed it. A zklock.Client does that after all locks on it
// have ended. So Expire keeps exclusion, as a real expiry does: a lock has ended at its holder
// before another client can hold it. [Ensemble.KillSession] does not keep it.
//
// Expire returns when the leader has ended the session, or leads no longer. That takes as long as
// the client takes to close it: a moment, or loss_delay. A session that its client does not close,
// or whose client is stopped by [Ensemble.Freeze], ends when it has been silent for its timeout.
// Without a leader, or without such a session, Expire does nothing.
func (e *Ensemble) Expire(sessionID int64) { e.expire(sessionID) }

// ExpireAll does to all sessions together what [Ensemble.Expire] does to one.
func (e *Ensemble) ExpireAll() { e.expire(e.Sessions()...) }

func (e *Ensemble) expire(sessionIDs ...int64) {
	e.enter()
	var all []chan struct{}
	for _, id := range sessionIDs {
		t := e.tracked(id)
		if t == nil {
			continue
		}
		if t.gone == nil {
			t.gone = make(chan struct{})
		}
		all = append(all, t.gone)
		if s := e.sessions[id]; s != nil {
			s.lapse()
		} else {
			e.kill(id) // no client believes in it: it was given up, or its handshake is under way
		}
	}
	e.leave()
	for _, gone := range all {
		<-gone
	}
}

// KillSession makes the leader end a session at once, as the operator of an ensemble can. The
// session's client learns of it later, when its server closes the connection and the next server
// refuses the session. So KillSession breaks exclusion: until then another client can hold a lock
// that its former holder still believes in. Without a leader, or without such a session,
// KillSession does nothing.
func (e *Ensemble) KillSession(sessionID int64) {
	e.enter()
	defer e.leave()
	e.kill(sessionID)
}

func (e *Ensemble) kill(sessionID int64) {
	if t := e.tracked(sessionID); t != nil && !t.closing {
		e.acting().end(t)
	}
}

// tracked returns what the acting leader knows of a session; nil without a leader, or without such
// a session.
func (e *Ensemble) tracked(sessionID int64) *tracked {
	if l := e.acting(); l != nil {
		return l.sessions[sessionID]
	}
	return nil
}

// KillConnection breaks a session's connection for both ends at once, and drops the
// messages under way on it. The session lives, and its client reconnects.
func (e *Ensemble) KillConnection(sessionID int64) {
	e.enter()
	defer e.leave()
	if c := e.connOf(sessionID); c != nil {
		c.reset()
	}
}

// Lag implements memcontrol.Controls.
func (e controls) Lag(server int, d time.Duration) {
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
	s.upAt = later(s.upAt, e.clock.now.Add(restartTime))
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

// MaxTimeout implements memcontrol.Controls.
func (e controls) MaxTimeout(server int, d time.Duration) {
	e.enter()
	defer e.leave()
	e.servers[server].maxTimeout = d
}

// SetSequence implements memcontrol.Controls.
func (e controls) SetSequence(path string, next int32) error {
	return e.order(driver.Op{Kind: opSequence, Path: path, Version: next})
}

// SetACL implements memcontrol.Controls.
func (e controls) SetACL(path string, acl []driver.ACL) error {
	return e.order(driver.Op{Kind: opACL, Path: path, ACL: acl})
}

// Delete implements memcontrol.Controls.
func (e controls) Delete(path string) error {
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
		if (controls{e}).Delete(path) == nil {
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
	switch op.Kind {
	case opSequence:
		name = "set sequence of"
	case opACL:
		name = "set access list of"
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
