package session

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// A session counts its places, and how many of them need its lease.
//
// A place needs the lease from before its creation until it is gone, except while it rests:
// while it waits behind other waiters, so that it cannot be granted next. If every place of a session
// rests, the session is at rest. It sends Syncs as an idle session does, and no heartbeats. The
// row "32 processes, 1 name, one holds it" of the bench counts what that saves.
//
// At rest the lease does not count. Nothing can be lost with it, since a place that rests
// has no hold. What is proven stays true, and Syncs keep the chain ready: one committed write
// proves a lease that is long enough for a grant. A grant needs a lease that counts: see Hold.
//
// A session that proves no lease ends when the ensemble has not answered for a session timeout.
// Otherwise its waiters would wait through an outage of any length. Nothing else would end an idle
// session either whose ensemble was set up again or restored: its servers close the connection of a
// client that has seen a later transaction than they have, and never say that its session is over.

// Enter counts a new place, which needs the lease, and the bytes of its ephemeral znodes: see room.go. It
// returns errs.ErrSessionOver if the session is over, and errs.ErrNoRoom if it and the reserve have no room for them.
func (s *life) Enter(bytes, reserve int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over != nil:
		return errs.ErrSessionOver
	case !s.hasRoom(bytes - reserve):
		return errs.ErrNoRoom
	}
	s.bytes.Add(int64(bytes))
	s.tallyLocked(1, 1)
	return nil
}

// hasRoom reports whether the session may have so many more bytes of ephemeral znodes; less than 0: beyond its
// room, from a reserve. Without mu that may change at once.
func (s *life) hasRoom(bytes int) bool { return s.fits(bytes, s.common.bounds.limit(s.settings)) }

// mayHaveRoom is hasRoom if the servers read all that is not known to be too large: see Session.grow.
func (s *life) mayHaveRoom(bytes int) bool {
	return s.hasRoom(bytes) || s.fits(bytes, s.common.bounds.hoped(s.settings))
}

func (s *life) fits(bytes, limit int) bool {
	return bytes == 0 || int(s.bytes.Load())+bytes <= ephemerals(limit)
}

// Ephemerals returns how many bytes the session's ephemeral znodes have, and how many they have at most.
func (s *life) Ephemerals() (bytes, most int) {
	return int(s.bytes.Load()), ephemerals(s.common.bounds.hoped(s.settings))
}

// Leave ends the count of a place that is gone, and of its bytes. rests says whether the place rests. A session that
// retires ends with its last place.
func (s *life) Leave(bytes int, rests bool) {
	after, needing := func() {}, -1
	if rests {
		needing = 0
	}
	s.mu.Lock()
	s.bytes.Add(int64(-bytes))
	s.tallyLocked(-1, needing)
	if s.work == 0 {
		if s.lease.Until = (time.Time{}); s.retiring {
			after = s.endLocked(driver.Closed, errs.ErrSessionEnded)
		}
	}
	s.mu.Unlock()
	after()
}

// Rest counts a place as one that does not need the lease for now. The place has no hold,
// and gets none before the caller has called Stir.
func (s *life) Rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tallyLocked(0, -1)
}

// Stir counts a place that rested as one that needs the lease again. If less of the lease is left than a held lock
// has at least, the next heartbeat is early.
func (s *life) Stir() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tallyLocked(0, 1)
	if !s.counting && s.needing == 1 {
		s.urgent = true
		Poke(s.rouse)
	}
}

// tallyLocked changes the number of places, and of those that need the lease. The lease counts
// from the first of these to the last, if as much of it is left as a held lock has at least. With less, an election
// would end the session, and the places that rest, before a heartbeat could be answered: then the lease counts from the next
// committed write. mu is held.
func (s *life) tallyLocked(places, needing int) {
	before := s.needing
	s.work, s.needing = s.work+places, s.needing+needing
	switch {
	case before == 0 && s.needing > 0:
		now := lease.Now()
		scrap := s.lease.Until.Sub(now) < s.lease.LeastKept()
		if s.over == nil && !scrap && s.lease.Lasts(now) {
			s.countLocked()
		}
		if s.due.IsZero() || s.lease.Soonest(s.counting).Before(s.due) { // from now on exchanges are due more often
			Poke(s.rouse)
		}
	case before > 0 && s.needing == 0:
		s.counting = false
		s.publishLocked()
		s.hurryLocked() // from now on the overseer ends the session if the ensemble is silent
	}
}

// noteAnswer extends the lease by what an exchange proves that was sent at an instant on the connection
// of generation gen, and was answered on it just now. committed says that it was a write. The exchange
// counts only if the lease's chain belongs to that connection.
func (s *life) noteAnswer(gen uint64, sent time.Time, committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || gen != s.gen {
		return
	}
	answered := lease.Now()
	if s.heard = answered; committed {
		s.latency, s.refused = answered.Sub(sent), nil
	}
	if s.counting && !answered.Before(s.lease.Until) {
		Poke(s.look) // the reply came too late: the overseer ends the session
		return
	}
	if committed || !s.counting {
		s.pause = ""
	}
	before := s.lease.Until
	s.lease.Acknowledged(sent, answered, committed)
	// A lease that is too short does not begin to count: the session might end with it
	// although all heartbeats are answered.
	switch {
	case s.counting && !s.lease.Until.Equal(before):
		s.renewedLocked()
	case committed && !s.counting && s.needing > 0 && s.lease.Lasts(answered):
		s.countLocked() // wake AwaitLease, even if the end of the lease is the same
	}
}

// countLocked makes the lease count. mu is held.
func (s *life) countLocked() {
	s.counting = true
	s.renewedLocked()
	s.hurryLocked()
}

// hurryLocked wakes the overseer if the session may end before it looks next. As a rule it cannot, since
// later leases end later: then a cycle without contention does not cost a wake of the overseer. mu is held.
func (s *life) hurryLocked() {
	if left, _ := s.endsLocked(); time.Now().Add(left).Before(s.looks) {
		Poke(s.look)
	}
}

// renewedLocked reports that the end of the lease has changed. It need not wake the overseer: a
// lease only grows while it counts, and the overseer looks for its end when it wakes. mu is held.
func (s *life) renewedLocked() {
	s.publishLocked()
	close(s.renewed)
	s.renewed = make(chan struct{})
}

// endsLocked returns how long it takes until the session ends if nothing happens before, and the
// cause. mu is held.
func (s *life) endsLocked() (left time.Duration, cause error) {
	now := lease.Now()
	if s.counting {
		return s.lease.Until.Sub(now), errs.ErrLeaseOver
	}
	// When the server falls silent, the newest exchange may be older than the server's last answer to a
	// ping, by an interval. The rest is for finding another server.
	return s.timeout + s.lease.SyncEvery() - s.quietLocked(now), errs.ErrSilent
}

// quietLocked returns how long ago an exchange was answered; the opening of the session counts as one.
// mu is held.
func (s *life) quietLocked(now time.Time) time.Duration {
	if s.heard.After(s.born) {
		return now.Sub(s.heard)
	}
	return now.Sub(s.born)
}

// Silent reports whether places wait without a lease, and the ensemble has not answered for
// half a session timeout. Then a lease would probably have run out.
func (s *life) Silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.counting && s.work > 0 && s.quietLocked(lease.Now()) >= s.timeout/2
}

// publishLocked copies the end of the lease to where Alive reads it.
func (s *life) publishLocked() {
	proven := int64(0)
	if s.over == nil && s.counting {
		proven = int64(s.lease.Until.Sub(s.born))
	}
	s.proven.Store(proven)
}

// Alive reports whether the lease counts and has not run out. While that is so, Alive locks no
// mutex. Otherwise it looks again with mu locked. The lease is extended under mu too, so a caller
// that has seen the lease's end never sees it extended.
func (s *life) Alive() bool {
	if proven := s.proven.Load(); proven > 0 && lease.Now().Sub(s.born) < time.Duration(proven) {
		return true
	}
	left, _ := s.Left()
	return left > 0
}

// Left returns how much of the lease is left, and a channel that is closed when the lease
// has changed. The duration is 0 if the lease does not count or the session is over.
func (s *life) Left() (time.Duration, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftLocked(), s.renewed
}

// leftLocked is Left without the channel, for a caller that holds mu.
func (s *life) leftLocked() time.Duration {
	if s.over != nil || !s.counting {
		return 0
	}
	d := s.lease.Until.Sub(lease.Now())
	if d <= 0 {
		Poke(s.look)
		return 0
	}
	return d
}

// Leased reports whether enough of the lease is left to hand out a lock.
func (s *life) Leased() bool {
	left, _ := s.Left()
	return left >= s.Least()
}

// Least returns how much of the lease must be left to hand out a lock. It never changes.
func (s *life) Least() time.Duration { return s.lease.Least() }

// LeastKept returns how much of the lease is left at least while heartbeats are answered.
func (s *life) LeastKept() time.Duration { return s.lease.LeastKept() }

// provenUntil returns the instant until which isProven is true for what the session has shown so
// far; the zero time if it is not.
func (s *life) provenUntil() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || s.counting && s.leftLocked() <= 0 {
		return time.Time{}
	}
	now := lease.Now()
	return now.Add(s.timeout - s.quietLocked(now))
}
