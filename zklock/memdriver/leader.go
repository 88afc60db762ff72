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

// errSessionMoved is the leader's answer to a request that a server forwarded
// for a session which another server has taken over. Clients never see it:
// their server ends the connection.
var errSessionMoved = errors.New("session moved")

// tracked is what a leader knows of a session beyond the log.
type tracked struct {
	id      int64
	timeout time.Duration
	expires time.Duration // since the ensemble's start, a whole number of ticks
	owner   *server       // through whom its requests must come; nil: whoever is first
	closing bool
}

// leadership is one server's term as leader. It goes on in good faith after
// the others have elected somebody else, until the server notices.
type leadership struct {
	srv    *server
	active bool
	zxid   int64 // newest given out: epoch<<32 | counter
	// head is the state after everything proposed, committed or not: what new
	// requests are checked against. Alone, a leader commits what it proposes
	// at once, and head is the server's tree itself.
	head      *tree
	proposals []*txn // not committed, in order; the end of srv.log
	learners  []*learner
	sessions  map[int64]*tracked

	ticks    int
	half     bool       // half a tick has passed
	orders   []*request // of the operator, not executed yet
	beat     *event     // the next half tick; nil while the ensemble is idle
	expiring *event     // the next look for expired sessions
	reaping  *event     // the next look for empty containers
	reapAt   time.Time
}

// lead makes s the leader of a new epoch. Every session gets its full timeout
// anew: nobody knows when it was heard last.
func (s *server) lead() {
	e := s.e
	s.leaveRole()
	s.catchUp()
	e.epoch++
	l := &leadership{srv: s, active: true, zxid: e.epoch << 32, sessions: make(map[int64]*tracked)}
	// What a majority may have acknowledged is committed by being here; and
	// what only this server had accepted becomes so, late.
	log := s.log
	s.log = nil
	for _, tx := range log {
		e.record(tx)
		s.apply(tx)
	}
	s.role, s.leader, s.epoch = leading, l, e.epoch
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

// start sets the leader's periodic work going.
func (l *leadership) start() {
	e := l.srv.e
	if l.beat == nil && len(e.servers) > 1 {
		l.beat = e.after(e.config.tick/2, l.halfTick)
	}
	l.planExpiry()
	l.planReap()
}

// stop ends what start began.
func (l *leadership) stop() {
	e := l.srv.e
	e.cancel(l.beat)
	e.cancel(l.expiring)
	e.cancel(l.reaping)
	l.beat, l.expiring, l.reaping = nil, nil, nil
}

// touch counts a sign of life of a session, unless it is over.
func (l *leadership) touch(id int64, timeout time.Duration) bool {
	t := l.sessions[id]
	if t == nil || t.closing {
		return false
	}
	t.timeout = timeout
	// Also when that is earlier: a smaller timeout moves the expiry up.
	t.expires = l.srv.e.expiry(timeout)
	return true
}

// adopt answers whether a session that comes back through server s lives, and
// makes s its owner if so.
func (l *leadership) adopt(id int64, timeout time.Duration, s *server) bool {
	if !l.touch(id, timeout) {
		return false
	}
	l.sessions[id].owner = s
	return true
}

// submit takes a request from a server, the leader's own or another's.
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
			l.srv.e.wake() // the client has gone while this was under way; its session stays
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

// admit checks that the session lives and that the request comes through the
// server that owns it.
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

// propose gives a transaction the next zxid, works out what it does, and sends
// it to the followers. It is committed once a majority has it in its log.
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
	tx.acks = 1 << l.srv.index
	for _, link := range l.learners {
		link.propose(tx)
	}
}

// acknowledged counts a follower's answer to a proposal, and commits in order
// all that have a majority now.
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
		delete(l.sessions, tx.session)
		l.srv.e.rest()
	}
	l.srv.commit(tx)
}

// answerSync lets the answer to a sync follow the commits to where it came from.
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

// halfTick is the leader's loop: pings to the followers each half tick, and
// each tick a look at whether a majority still answers.
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

// planExpiry schedules the next look for expired sessions at a whole tick.
func (l *leadership) planExpiry() {
	e := l.srv.e
	if l.expiring == nil && len(l.sessions) > 0 {
		since := e.clock.now.Sub(e.start)
		l.expiring = e.after(e.config.tick-since%e.config.tick, l.expire)
	}
}

// expire proposes the end of the sessions whose time has come. A leader alone
// in the belief that it leads proposes in vain.
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

// end closes a session on the leader's own account.
func (l *leadership) end(t *tracked) {
	t.closing = true
	l.propose(&txn{kind: txnCloseSession, session: t.id})
}

// settled strikes an operator's request that is done off the list.
func (l *leadership) settled(r *request) {
	l.orders = slices.DeleteFunc(l.orders, func(other *request) bool { return other == r })
}

// resign ends the term. Requests that wait for the leader are never answered;
// what it has proposed stays in its log and may still be committed by a later
// leader that has it.
func (l *leadership) resign() {
	l.active = false
	for _, r := range l.orders {
		r.finish(driver.ErrConnLoss)
	}
	l.stop()
	for _, link := range slices.Clone(l.learners) {
		link.closeLeader()
	}
}
