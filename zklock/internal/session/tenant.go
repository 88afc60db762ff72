package session

import (
	"slices"
	"time"
)

// Tenant is something that is held on a session and ends with it: a hold. A session may have
// ten thousand of them.
type Tenant interface {
	// LeaveLocked takes the tenant off its session, which is over. The caller holds the
	// session's Mu.
	LeaveLocked()

	// MarkLost marks the tenant as lost. It returns false if the tenant is over already:
	// then Finish, Vacate and Report are not called.
	MarkLost() bool

	// Finish ends all handles on the tenant, with the cause and the time of the loss.
	Finish(cause error, at time.Time)

	// Vacate lets waiters of this process go on.
	Vacate()

	// Report reports the loss to hooks and the log.
	Report()

	// Review looks for handles that callers have dropped.
	Review()

	// Since returns when the oldest handle was acquired; zero if there is none.
	Since() time.Time
}

// Evict ends tenants as lost, except for those that are over already, and returns the ones
// that it has ended. It calls no hooks and lets no waiter in. The caller does that
// afterwards, when all of them have ended, with Vacate and Report.
//
// Evict marks all tenants before it ends the first handle. A handle may end slowly, because
// much code runs when its context ends; the marks show the other losses meanwhile.
func Evict(all []Tenant, cause error, at time.Time) (lost []Tenant) {
	lost = slices.DeleteFunc(all, func(t Tenant) bool { return !t.MarkLost() })
	for _, t := range lost {
		t.Finish(cause, at)
	}
	return lost
}

// ReportAll returns a function that reports the loss of each tenant.
func ReportAll(lost []Tenant) func() {
	return func() {
		for _, t := range lost {
			t.Report()
		}
	}
}

// tenantsNow returns the present tenants of the session.
func (s *Session) tenantsNow() []Tenant {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	all := make([]Tenant, 0, len(s.Tenants))
	for t := range s.Tenants {
		all = append(all, t)
	}
	return all
}

// review makes all tenants look for handles that callers have dropped.
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
