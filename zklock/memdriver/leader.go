package memdriver

import (
	"cmp"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// errSessionMoved is the leader's answer to a request that a server forwarded for a
// session which another server has taken over. Clients never see it: the forwarding
// server ends the connection.
var errSessionMoved = errors.New("session moved")

// tracked is a leader's knowledge of a session that is not in the log.
type tracked struct {
	id      int64
	timeout time.Duration
	expires time.Duration // since the ensemble's start, a whole number of ticks
	owner   *server       // the only server that may forward its requests; nil: the first server that forwards one
	closing bool
	gone    chan struct{} // nil, or closed when the session or the leader's term has ended; calls of Expire wait for it
}

// wake lets calls of Expire return.
func (t *tracked) wake() {
	if t.gone != nil {
		close(t.gone)
		t.gone = nil
	}
}

// leadership is one server's term as leader. After the others have elected another
// leader, it goes on until the server notices.
type leadership struct {
	srv    *server
	active bool
	zxid   int64 // the newest assigned zxid: epoch<<32 | counter
	// head is the state after everything proposed, committed or not. New requests are
	// checked against it. The only server of an ensemble commits what it proposes at once, and
	// head is then its tree itself, if it does not lag.
	head      *tree
	proposals []*txn // not committed yet, in order; the end of srv.log
	learners  []*learner
	sessions  map[int64]*tracked

	ticks    int
	half     bool       // half a tick has passed
	orders   []*request // the operator's requests that are not executed yet
	beat     *event     // the next half tick; nil while the ensemble is idle
	expiring *event     // the next check for expired sessions
	reaping  *event     // the next check for empty containers
	reapAt   time.Time
}

// lead makes s the leader of a new epoch. Every session gets its full timeout again,
// since no server knows when it was last heard.
func (s *server) lead() {
	e := s.e
	s.leaveRole()
	s.catchUp()
	e.epoch++
	l := &leadership{srv: s, active: true, sessions: make(map[int64]*tracked)}
	// Entries of the log that a majority may have acknowledged are committed. Entries
	// that only this server had accepted are committed late, by this election.
	log := s.log
	s.log = nil
	for _, tx := range log {
		e.record(tx)
		s.apply(tx)
	}
	s.role, s.leader, s.epoch = leading, l, e.epoch
	l.zxid = max(e.epoch<<32, s.tree.zxid) // after a restore, the server may know transactions of this epoch
	s.tree.zxid = l.zxid
	l.head = s.tree
	if len(e.servers) > 1 || s.lag > 0 {
		l.head = s.tree.clone()
	}
	for id, ts := range s.tree.sessions {
		l.sessions[id] = &tracked{id: id, timeout: ts.timeout, expires: e.expiry(ts.timeout)}
	}
	l.reapAt = e.clock.now.Add(e.config.reapInterval)
	if e.busy() {
		l.start()
	}
}

// start starts the leader's periodic work.
func (l *leadership) start() {
	e := l.srv.e
	if l.beat == nil && len(e.servers) > 1 {
		l.beat = e.after(e.config.tick/2, l.halfTick)
	}
	l.planExpiry()
	l.planReap()
}

// stop stops the work that start has started.
func (l *leadership) stop() {
	e := l.srv.e
	e.cancel(l.beat)
	e.cancel(l.expiring)
	e.cancel(l.reaping)
	l.beat, l.expiring, l.reaping = nil, nil, nil
}

// touch records a sign of life of a session. It returns false if the session is over.
func (l *leadership) touch(id int64, timeout time.Duration) bool {
	t := l.sessions[id]
	if t == nil || t.closing {
		return false
	}
	t.timeout = timeout
	// This also applies if it is earlier: a smaller timeout brings the expiry
	// forward.
	t.expires = l.srv.e.expiry(timeout)
	return true
}

// adopt reports whether a session whose client reconnects through server s still
// lives. If so, s becomes its owner.
func (l *leadership) adopt(id int64, timeout time.Duration, s *server) bool {
	if !l.touch(id, timeout) {
		return false
	}
	l.sessions[id].owner = s
	return true
}

// submit handles a request that a server has forwarded, the leader's own server or
// another.
func (l *leadership) submit(tx *txn) {
	if !l.active {
		return
	}
	if tx.kind == txnCreateSession {
		idle := !l.srv.e.busy()
		l.sessions[tx.session] = &tracked{
			id: tx.session, timeout: tx.timeout, owner: tx.origin, expires: l.srv.e.expiry(tx.timeout),
		}
		if idle {
			l.srv.e.wake() // the client left while this was under way, but its session exists now
		}
		l.planExpiry()
		l.propose(tx)
		return
	}
	err := l.admit(tx)
	switch {
	case tx.kind == txnSync:
		tx.err = err
		if n := len(l.proposals); n > 0 {
			l.proposals[n-1].syncs = append(l.proposals[n-1].syncs, tx)
			return
		}
		l.answerSync(tx)
		return
	case err != nil:
		tx.kind, tx.err = txnError, err
	case tx.kind == txnCloseSession && tx.session != 0:
		l.sessions[tx.session].closing = true
	}
	l.propose(tx)
}

// admit checks that the session lives and that the server that owns it has forwarded the
// request.
func (l *leadership) admit(tx *txn) error {
	if tx.session == 0 {
		return nil
	}
	t := l.sessions[tx.session]
	switch {
	case t == nil || t.closing:
		return driver.ErrSessionExpired
	case t.owner == nil:
		t.owner = tx.origin
	case t.owner != tx.origin:
		return errSessionMoved
	}
	return nil
}

// propose assigns the next zxid to a transaction, computes its effect, and sends it
// to the followers. It is committed once a majority has it in its log.
func (l *leadership) propose(tx *txn) {
	l.zxid++
	tx.zxid = l.zxid
	tx.ms = l.srv.e.clock.now.UnixMilli()
	tx.failed = -1
	l.head.exec(tx)
	if l.srv.e.config.journal != nil {
		tx.noteChanges(l.head)
	}
	if len(l.srv.e.servers) == 1 {
		l.commit(tx)
		return
	}
	l.srv.log = append(l.srv.log, tx)
	l.proposals = append(l.proposals, tx)
	l.srv.disk.store(func() {
		if l.active {
			l.acknowledged(tx, l.srv) // at once, if no flush is needed: then it commits nothing
		}
	})
	for _, link := range l.learners {
		link.propose(tx)
	}
}

// acknowledged counts a follower's answer to a proposal. It commits, in order, all
// proposals that now have a majority.
func (l *leadership) acknowledged(tx *txn, s *server) {
	// A follower that lost its link and came back may answer twice.
	tx.acks |= 1 << s.index
	for len(l.proposals) > 0 && l.srv.e.majority(bits.OnesCount64(l.proposals[0].acks)) {
		tx := l.proposals[0]
		l.proposals[0] = nil
		l.proposals = l.proposals[1:]
		l.srv.log = l.srv.log[1:]
		for _, link := range l.learners {
			link.commit(tx)
		}
		l.commit(tx)
		for _, sync := range tx.syncs {
			l.answerSync(sync)
		}
		tx.syncs = nil
	}
}

// commit applies a transaction on the leader itself.
func (l *leadership) commit(tx *txn) {
	l.srv.e.record(tx)
	if tx.kind == txnCloseSession && tx.err == nil {
		if t := l.sessions[tx.session]; t != nil {
			t.wake()
		}
		delete(l.sessions, tx.session)
		l.srv.e.rest()
	}
	l.srv.commit(tx)
}

// answerSync sends the answer to a sync to the server that forwarded it, behind the commits.
func (l *leadership) answerSync(tx *txn) {
	if tx.origin == l.srv {
		l.srv.commit(tx)
		return
	}
	for _, link := range l.learners {
		if link.follower == tx.origin {
			link.commit(tx)
		}
	}
}

// halfTick is the leader's loop. Each half tick it pings the followers, and each tick
// it checks whether a majority still answers.
func (l *leadership) halfTick() {
	e := l.srv.e
	l.beat = nil
	l.half = !l.half
	if !l.half {
		l.ticks++
	}
	for _, link := range slices.Clone(l.learners) {
		if link.deadline < l.ticks {
			link.closeLeader()
			continue
		}
		link.ping()
	}
	if !l.half && !e.majority(1+len(l.learners)) {
		l.srv.look()
		return
	}
	l.beat = e.after(e.config.tick/2, l.halfTick)
}

// planExpiry schedules the next check for expired sessions, at a whole tick.
func (l *leadership) planExpiry() {
	e := l.srv.e
	if l.expiring == nil && len(l.sessions) > 0 {
		since := e.clock.now.Sub(e.start)
		l.expiring = e.after(e.config.tick-since%e.config.tick, l.expire)
	}
}

// expire proposes the end of the sessions that are due. A leader that was deposed and
// does not know it proposes in vain.
func (l *leadership) expire() {
	l.expiring = nil
	now := l.srv.e.clock.now.Sub(l.srv.e.start)
	for _, t := range slices.SortedFunc(maps.Values(l.sessions), byID) {
		if t.expires <= now && !t.closing {
			l.end(t)
		}
	}
	l.planExpiry()
}

func byID(a, b *tracked) int { return cmp.Compare(a.id, b.id) }

// end ends a session at the leader's own initiative.
func (l *leadership) end(t *tracked) {
	t.closing = true
	l.propose(&txn{kind: txnCloseSession, session: t.id})
}

// settled removes an operator's finished request from the list.
func (l *leadership) settled(r *request) {
	l.orders = slices.DeleteFunc(l.orders, func(other *request) bool { return other == r })
}

// resign ends the term. Requests that wait for the leader are never answered. Its
// proposals stay in its log; a later leader that has them may still commit them.
func (l *leadership) resign() {
	l.active = false
	for _, r := range l.orders {
		r.finish(driver.ErrConnLoss)
	}
	for _, t := range l.sessions {
		t.wake()
	}
	l.stop()
	for _, link := range slices.Clone(l.learners) {
		link.closeLeader()
	}
}
