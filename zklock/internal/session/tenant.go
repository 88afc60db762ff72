package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Tenant is a hold of a place: a lock's, or the standby of a place that the client keeps between
// two locks. It ends with its session. A session may have ten thousand of them.
type Tenant interface {
	// MarkLost marks the tenant as lost. It returns false if the tenant is over already, or is
	// not live yet, and then never will be: then Finish, Vacate and Report are not called.
	MarkLost() bool

	// Finish ends all handles on the tenant, with the cause and the time of the loss.
	Finish(cause error, at time.Time)

	// Vacate lets waiters of this process go on.
	Vacate()

	// Report reports the loss to hooks.
	Report()

	// Review looks for handles that callers have dropped.
	Review()

	// Name returns the lock's name, and locks no mutex. A tenant without a name is a standby: no
	// caller has a Lock of it, and its loss is not reported.
	Name() string

	// Since returns when the oldest handle was acquired; zero if there is none.
	Since() time.Time

	// Candidacy reports whether the tenant is meant to be held for long.
	Candidacy() bool
}

// Hold adds a tenant. It refuses if the session is over or less than least of its lease is left.
//
// The session may end right after that. So the caller first adds the tenant, and makes it live
// after that, in a step of the tenant's own: MarkLost is the other step. The one that comes first
// decides. A tenant that was lost before it became live was never held.
func (s *Session) Hold(t Tenant, least time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || s.leftLocked() < least {
		return false
	}
	s.tenants[t] = struct{}{}
	return true
}

// Drop takes a tenant off the session, if the session has it.
func (s *Session) Drop(t Tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tenants, t)
}

// Evict ends one tenant as lost, while the session lives on. It does nothing if the session is
// over, because then the tenant is lost with it.
func (s *Session) Evict(t Tenant, cause error) {
	s.mu.Lock()
	if s.over != nil {
		s.mu.Unlock()
		return
	}
	report := s.notices.expectLocked(false)
	delete(s.tenants, t)
	s.spareLocked([]Tenant{t}, cause)
	s.mu.Unlock()
	lost := s.lose([]Tenant{t}, cause, time.Now(), func() {})
	report <- func() { s.reportLoss(lost, cause) }
}

// lose ends tenants as lost, except for those that are over already, and returns those that it
// has ended. When all of them have, it calls leave and lets waiters go on.
//
// It marks all tenants before it ends the first handle. A handle may end slowly, because
// much code runs when its context ends; until then the marks show the other losses.
func (s *Session) lose(all []Tenant, cause error, at time.Time, leave func()) (lost []Tenant) {
	lost = slices.DeleteFunc(all, func(t Tenant) bool { return !t.MarkLost() })
	for _, t := range lost {
		t.Finish(cause, at)
	}
	s.mu.Lock()
	s.spareLocked(lost, cause) // again: the delay counts from now, when Done is closed for all of them
	s.mu.Unlock()
	leave()
	for _, t := range lost {
		t.Vacate()
	}
	return lost
}

// reportLoss reports a loss: with one line in the log, also for a session that is lost without any
// tenants, and to the hooks for each tenant.
func (s *Session) reportLoss(lost []Tenant, cause error) {
	lost = slices.DeleteFunc(lost, func(t Tenant) bool { return !isHeld(t) })
	if text := lossText(len(lost), cause); text != "" {
		s.settings.Log().Warn(text, "session", HexID(s.DS.ID()), "cause", cause, "locks", len(lost), "names", someNames(lost))
	}
	for _, t := range lost {
		t.Report()
	}
}

// isHeld reports whether callers have Locks of a tenant, unlike a standby.
func isHeld(t Tenant) bool { return t.Name() != "" }

// lossText returns the text of the log line for the loss of n tenants; "" for none.
func lossText(n int, cause error) string {
	switch {
	case isLoss(cause) && cause != errs.ErrNodeDeleted && n > 0:
		return "zklock: session lost, and its locks with it; another session takes its place"
	case isLoss(cause) && cause != errs.ErrNodeDeleted:
		return "zklock: session lost, another one takes its place"
	case n == 1:
		return "zklock: lock lost"
	case n > 1:
		return "zklock: locks lost"
	}
	return ""
}

// someNames returns the names of the first tenants, sorted, for the log.
func someNames(all []Tenant) string {
	const maxLoggedNames = 5
	var names []string
	for _, t := range all[:min(len(all), maxLoggedNames)] {
		names = append(names, t.Name())
	}
	slices.Sort(names)
	if len(all) > maxLoggedNames {
		names = append(names, "...")
	}
	return strings.Join(names, " ")
}

// HexID returns a session's id for the log, as ZooKeeper's own tools print it.
func HexID(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

// tenantsNow returns the tenants of the session.
func (s *Session) tenantsNow() []Tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.tenants))
}

// Held returns how many tenants of the session have handles, how many of these are meant to be held
// for long, and for how long the oldest of the others has been held.
func (s *Session) Held() (n, leading int, longest time.Duration) {
	for _, t := range s.tenantsNow() {
		since := t.Since()
		switch {
		case since.IsZero():
			continue
		case t.Candidacy():
			leading++
		default:
			longest = max(longest, time.Since(since))
		}
		n++
	}
	return n, leading, longest
}

// A loss delay is a time between the end of a lost lock and the next grant of that lock.
// Requests that the holder has sent to a resource that does not check tokens can arrive in
// that time. The holder's client makes the delay, in two ways:
//
//   - It computes leases from a session timeout that is shorter by loss_delay. The leader
//     expires the session no earlier than a touch plus the full timeout, so the lock is
//     lost at least loss_delay before that.
//   - It keeps the nodes of a lost lock for loss_delay, as long as the session lives: it does
//     not close the session before, and if an All has lost one node, it does not delete the
//     others. The driver keeps the session alive; if it cannot, the first point applies.
//
// Other clients do not have to know of it: waiters wait for nodes to go. A release deletes its
// node at once. No write is added, and no state is kept for a name.
//
// What the delay does not cover is in docs/guarantees.md. A delay that began before Close is kept.

// spareLocked records that tenants are lost now: the nodes of their locks stay for loss_delay. It
// is called before any caller learns of the loss, and so before a caller can close the session.
func (s *Session) spareLocked(lost []Tenant, cause error) {
	if cause != errs.ErrClosed && slices.ContainsFunc(lost, isHeld) {
		s.spared = lease.Now().Add(s.settings.LossDelay)
	}
}

// awaitSpared returns when the nodes of lost locks need not stay: after loss_delay at most.
// Nothing ends the wait earlier.
func (s *Session) awaitSpared() {
	for {
		s.mu.Lock()
		wait := s.spared.Sub(lease.Now())
		s.mu.Unlock()
		if wait <= 0 {
			return
		}
		time.Sleep(wait)
	}
}
