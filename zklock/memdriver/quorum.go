package memdriver

import (
	"maps"
	"slices"
	"time"
)

// learner is the connection between a leader and one follower.
type learner struct {
	leader   *leadership
	follower *server
	up       pipe // follower to leader
	down     pipe // leader to follower

	leaderOpen   bool
	followerOpen bool
	deadline     int // an answer is in time until this tick of the leader
}

// follow makes s a follower: it takes over the leader's state, drops the entries that
// only its own log has, and starts serving.
func (s *server) follow(l *leadership) {
	e := s.e
	s.leaveRole()
	leader := l.srv
	// The new log contains all that s has acknowledged before, and must not lose it.
	s.commits, s.log = nil, slices.Clone(l.proposals)
	// The leader's committed state is its tree plus the commits that it has not
	// applied yet.
	s.tree = leader.tree.clone()
	for _, tx := range leader.commits {
		if tx.kind != txnSync {
			s.tree.replay(tx)
		}
	}
	s.tree.zxid = max(s.tree.zxid, l.zxid>>32<<32)
	link := &learner{
		leader: l, follower: s, leaderOpen: true, followerOpen: true,
		deadline: l.ticks + e.config.syncLimit,
		up:       pipe{e: e, delay: e.config.latency},
		down:     pipe{e: e, delay: e.config.latency},
	}
	l.learners = append(l.learners, link)
	e.links = slices.DeleteFunc(e.links, func(k *learner) bool { return !k.leaderOpen && !k.followerOpen })
	e.links = append(e.links, link)
	s.role, s.learner, s.epoch, s.heard = following, link, l.zxid>>32, e.clock.now
	for _, tx := range s.log {
		link.acknowledge(tx)
	}
	if e.busy() {
		s.watchLeader()
	}
}

// propose sends a transaction; the follower appends it to its log and acknowledges
// it.
func (k *learner) propose(tx *txn) {
	k.down.send(func() {
		if !k.followerOpen {
			return
		}
		s := k.follower
		s.heard = s.e.clock.now
		s.log = append(s.log, tx)
		s.disk.store(func() { k.acknowledge(tx) })
	})
}

// acknowledge reports to the leader that a transaction is in the follower's log.
func (k *learner) acknowledge(tx *txn) {
	k.up.send(func() {
		if k.leaderOpen {
			k.deadline = k.leader.ticks + k.follower.e.config.syncLimit
			k.leader.acknowledged(tx, k.follower)
		}
	})
}

// commit notifies the follower that it may apply a transaction, or answer a sync.
func (k *learner) commit(tx *txn) {
	k.down.send(func() {
		if !k.followerOpen {
			return
		}
		s := k.follower
		s.heard = s.e.clock.now
		if tx.kind != txnSync {
			s.log = s.log[1:]
		}
		s.commit(tx)
	})
}

// ping asks the follower for a sign of life. The answer lists the sessions that the follower
// has heard from since the last answer. Only that shows the leader that the clients of a
// follower are alive.
func (k *learner) ping() {
	k.down.send(func() {
		if !k.followerOpen {
			return
		}
		s := k.follower
		s.heard = s.e.clock.now
		touched := s.touched
		s.touched = make(map[int64]time.Duration)
		k.up.send(func() {
			if !k.leaderOpen {
				return
			}
			k.deadline = k.leader.ticks + s.e.config.syncLimit
			for id, timeout := range touched {
				k.leader.touch(id, timeout)
			}
		})
	})
}

// closeLeader closes the leader's end of the link. The follower notices that, if the link is not
// cut.
func (k *learner) closeLeader() {
	if !k.leaderOpen {
		return
	}
	k.leaderOpen = false
	k.leader.learners = slices.DeleteFunc(k.leader.learners, func(other *learner) bool { return other == k })
	k.down.send(func() {
		if k.followerOpen {
			k.follower.look()
		}
	})
}

// closeFollower closes the follower's end of the link. The leader notices that, if the link is not
// cut.
func (k *learner) closeFollower() {
	if !k.followerOpen {
		return
	}
	k.followerOpen = false
	k.up.send(k.closeLeader)
}

// reset breaks the link for both ends at once.
func (k *learner) reset() {
	k.up.breakOff()
	k.down.breakOff()
	k.closeLeader()
	if k.followerOpen {
		k.follower.look()
	}
}

// watchLeader makes the follower give its leader up once no message has come from it
// for syncLimit ticks. Until then the follower serves its clients as if its leader
// were alive.
func (s *server) watchLeader() {
	if s.guard != nil {
		return
	}
	limit := s.e.config.tick * time.Duration(s.e.config.syncLimit)
	s.guard = s.e.after(s.heard.Add(limit).Sub(s.e.clock.now), func() {
		s.guard = nil
		switch {
		case s.e.clock.now.Sub(s.heard) >= limit:
			s.look()
		default:
			s.watchLeader()
		}
	})
}

// leaveRole ends the server's present role.
func (s *server) leaveRole() {
	if l := s.leader; l != nil {
		s.leader = nil
		l.resign()
	}
	if k := s.learner; k != nil {
		s.learner = nil
		k.closeFollower()
	}
	s.touched = make(map[int64]time.Duration)
	s.e.cancel(s.guard)
	s.e.cancel(s.search)
	s.guard, s.search = nil, nil
	s.role = looking
}

// look makes the server drop its clients and search for a leader.
func (s *server) look() {
	s.leaveRole()
	s.dropClients()
	if s.e.busy() {
		s.planSearch()
	}
}

func (s *server) planSearch() {
	if s.search == nil {
		s.search = s.e.after(electionTime, s.seek)
	}
}

// seek joins a leader that can be reached, or elects one among the servers that look
// too. The server with the newest log wins. A majority has every committed
// transaction, so at least one member of any majority has all of them.
func (s *server) seek() {
	s.search = nil
	e := s.e
	if !s.started() {
		s.planSearch()
		return
	}
	if l := s.reachableLeader(); l != nil {
		s.follow(l)
		return
	}
	voters := []*server{s}
	best := s
	for _, other := range e.servers {
		if other == s || other.role != looking || !other.started() || e.parted(s, other) {
			continue
		}
		voters = append(voters, other)
		if other.newest() >= best.newest() {
			best = other
		}
	}
	// A majority has to begin the new epoch at once. Servers that only voted for it
	// could go back to their former leader, and commit with it transactions that the
	// new leader does not have.
	followers := slices.DeleteFunc(voters, func(voter *server) bool { return voter == best || e.parted(voter, best) })
	if !e.majority(1 + len(followers)) {
		s.planSearch()
		return
	}
	best.lead()
	for _, f := range followers {
		f.follow(best.leader)
	}
}

// reachableLeader returns the leader of the newest epoch that s can reach and may
// follow. No server goes back to a deposed leader: what it has proposed would be
// committed in addition to what its successor has committed.
func (s *server) reachableLeader() *leadership {
	var found *leadership
	for _, other := range s.e.servers {
		if other == s || other.role != leading || other.leader.zxid>>32 < s.epoch || s.e.parted(s, other) {
			continue
		}
		if found == nil || other.leader.zxid > found.zxid {
			found = other.leader
		}
	}
	return found
}

// started reports whether the server is up, after a restart if there was one.
func (s *server) started() bool { return !s.e.clock.now.Before(s.upAt) }

// newest returns the zxid of the last entry of the server's log.
func (s *server) newest() int64 {
	if n := len(s.log); n > 0 {
		return s.log[n-1].zxid
	}
	for i := len(s.commits) - 1; i >= 0; i-- {
		if s.commits[i].kind != txnSync { // a sync has no zxid
			return s.commits[i].zxid
		}
	}
	return s.tree.zxid
}

// wake starts the work that stands still while the ensemble is not used. Idle time is not
// silence: wake treats links that are not cut as heard from.
func (e *Ensemble) wake() {
	for _, s := range e.servers {
		switch s.role {
		case leading:
			for _, link := range s.leader.learners {
				if !link.up.cut && !link.down.cut {
					link.deadline = s.leader.ticks + e.config.syncLimit
				}
			}
			s.leader.start()
		case following:
			if !s.learner.up.cut && !s.learner.down.cut {
				s.heard = e.clock.now
			}
			s.watchLeader()
		case looking:
			s.planSearch()
		}
	}
}

// rest stops the periodic work if the ensemble is not in use.
func (e *Ensemble) rest() {
	if e.busy() {
		return
	}
	for _, s := range e.servers {
		if l := s.leader; l != nil {
			l.stop()
		}
		e.cancel(s.guard)
		e.cancel(s.search)
		s.guard, s.search = nil, nil
	}
}

// busy reports whether the periodic work must go on: there are clients, or sessions that must
// expire. Their expiry may first need the election of a leader.
func (e *Ensemble) busy() bool {
	if len(e.clients) > 0 || e.ports > 0 {
		return true
	}
	for _, s := range e.servers {
		switch {
		case s.leader != nil && len(s.leader.sessions) > 0:
			return true
		case s.role == looking && (len(s.tree.sessions) > 0 || len(s.commits) > 0 || len(s.log) > 0):
			return true
		}
	}
	return false
}

// acting returns the leader that a majority follows, or nil.
func (e *Ensemble) acting() *leadership {
	var found *leadership
	for _, s := range e.servers {
		l := s.leader
		if l == nil || !e.majority(1+len(l.learners)) {
			continue
		}
		if found == nil || l.zxid > found.zxid {
			found = l
		}
	}
	return found
}

// known returns the ids of the acting leader's sessions, sorted.
func (e *Ensemble) known() []int64 {
	l := e.acting()
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.sessions))
}
