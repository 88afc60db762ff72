package zklock

import (
	"slices"
	"time"
)

// tenant is something that is held on a session and ends with it. A session may have
// ten thousand.
type tenant interface {
	// leaveLocked takes it off its session, which is over. The session's mu is held.
	leaveLocked()

	// markLost marks it as lost. false: it is over already, and none of what follows
	// is called.
	markLost() bool

	// finish ends all that callers have of it.
	finish(cause error, at time.Time)

	// vacate lets others of this process go ahead.
	vacate()

	// tell reports the loss to hooks and the log.
	tell()

	// review looks for handles that callers have dropped.
	review()

	// since is when the oldest handle on it was acquired; zero if there is none.
	since() time.Time
}

// evict has tenants know that they are lost, but for those that are over already, and
// returns the others. It calls no hooks and lets no waiter in: vacate and tell do, which
// are the caller's to call when all of them have ended.
//
// All are marked before the first handle ends, so that a handle which ends slowly, since
// much runs when its context ends, delays no other's loss by more than that.
func evict(all []tenant, cause error, at time.Time) (lost []tenant) {
	lost = slices.DeleteFunc(all, func(t tenant) bool { return !t.markLost() })
	for _, t := range lost {
		t.finish(cause, at)
	}
	return lost
}

// tellAll returns what reports the loss of each.
func tellAll(lost []tenant) func() {
	return func() {
		for _, t := range lost {
			t.tell()
		}
	}
}

// tenantsNow returns what is held on the session.
func (s *session) tenantsNow() []tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]tenant, 0, len(s.tenants))
	for t := range s.tenants {
		all = append(all, t)
	}
	return all
}

// review has all tenants look for handles that were dropped.
func (s *session) review() {
	for _, t := range s.tenantsNow() {
		t.review()
	}
}

// longest returns for how long the oldest handle of the session has been held.
func (s *session) longest() (d time.Duration) {
	for _, t := range s.tenantsNow() {
		if since := t.since(); !since.IsZero() {
			d = max(d, time.Since(since))
		}
	}
	return d
}
