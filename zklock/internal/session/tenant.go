package session

import (
	"slices"
	"time"
)

// Tenant is something that is held on a session and ends with it. A session may have
// ten thousand.
type Tenant interface {
	// LeaveLocked takes it off its session, which is over. The session's mu is held.
	LeaveLocked()

	// MarkLost marks it as lost. false: it is over already, and none of what follows
	// is called.
	MarkLost() bool

	// Finish ends all that callers have of it.
	Finish(cause error, at time.Time)

	// Vacate lets others of this process go ahead.
	Vacate()

	// Tell reports the loss to hooks and the log.
	Tell()

	// Review looks for handles that callers have dropped.
	Review()

	// Since is when the oldest handle on it was acquired; zero if there is none.
	Since() time.Time
}

// Evict has tenants know that they are lost, but for those that are over already, and
// returns the others. It calls no hooks and lets no waiter in: Vacate and Tell do, which
// are the caller's to call when all of them have ended.
//
// All are marked before the first handle ends, so that a handle which ends slowly, since
// much runs when its context ends, delays no other's loss by more than that.
func Evict(all []Tenant, cause error, at time.Time) (lost []Tenant) {
	lost = slices.DeleteFunc(all, func(t Tenant) bool { return !t.MarkLost() })
	for _, t := range lost {
		t.Finish(cause, at)
	}
	return lost
}

// TellAll returns what reports the loss of each.
func TellAll(lost []Tenant) func() {
	return func() {
		for _, t := range lost {
			t.Tell()
		}
	}
}

// tenantsNow returns what is held on the session.
func (s *Session) tenantsNow() []Tenant {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	all := make([]Tenant, 0, len(s.Tenants))
	for t := range s.Tenants {
		all = append(all, t)
	}
	return all
}

// review has all tenants look for handles that were dropped.
func (s *Session) review() {
	for _, t := range s.tenantsNow() {
		t.Review()
	}
}

// Longest returns for how long the oldest handle of the session has been held.
func (s *Session) Longest() (d time.Duration) {
	for _, t := range s.tenantsNow() {
		if since := t.Since(); !since.IsZero() {
			d = max(d, time.Since(since))
		}
	}
	return d
}
