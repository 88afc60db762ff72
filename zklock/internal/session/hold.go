package session

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Dependent is what ends with its session: a hold of a place. Callers have its lock, or it is the client's own of a place
// that the client keeps between two locks. A session may have ten thousand of them.
type Dependent interface {
	// MarkLost marks the hold as lost. It returns false if the hold is over already, or is
	// not live yet, and then never will be: then Finish, Vacate and Report are not called.
	MarkLost() bool

	// Finish ends all handles of the hold, with the cause and the time of the loss.
	Finish(cause error, at time.Time)

	// Vacate lets waiters of this process go on.
	Vacate()

	// Report reports the loss to hooks.
	Report()

	// Review looks for handles that callers have dropped.
	Review()

	// Name returns the lock's name, and locks no mutex. A hold without a name is the client's own: no
	// caller has a Lock of it, and its loss is not reported.
	Name() string

	// Since returns when the oldest handle was acquired; zero if there is none.
	Since() time.Time

	// Candidacy reports whether the hold is meant to be held for long.
	Candidacy() bool
}

// Hold adds a hold. It refuses if the session is over or less than least of its lease is left.
//
// The session may end right after that. So the caller first adds the hold, and makes it live
// after that, in a step of the hold's own: MarkLost is the other step. The one that comes first
// decides. A hold that was lost before it became live was never held.
func (s *life) Hold(h Dependent, least time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || s.leftLocked() < least {
		return false
	}
	s.holds[h] = struct{}{}
	return true
}

// Drop takes a hold off the session, if the session has it.
func (s *life) Drop(h Dependent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// Evict ends one hold as lost, while the session lives on. It does nothing if the session is
// over, because then the hold is lost with it.
func (s *life) Evict(h Dependent, cause error) {
	s.mu.Lock()
	if s.over != nil {
		s.mu.Unlock()
		return
	}
	report := s.notices.expectLocked(false)
	delete(s.holds, h)
	s.delayLossLocked([]Dependent{h}, cause)
	s.mu.Unlock()
	lost := s.lose([]Dependent{h}, cause, time.Now())
	vacate(lost)
	report <- func() { s.reportLoss(lost, cause) }
}

// lose ends holds as lost, except for those that are over already, and returns those that it
// has ended.
//
// It marks all holds before it ends the first handle. A handle may end slowly, because
// much code runs when its context ends; until then the marks show the other losses.
func (s *life) lose(all []Dependent, cause error, at time.Time) (lost []Dependent) {
	lost = slices.DeleteFunc(all, func(h Dependent) bool { return !h.MarkLost() })
	for _, h := range lost {
		h.Finish(cause, at)
	}
	s.mu.Lock()
	s.delayLossLocked(lost, cause) // again: the delay counts from now, when Done is closed for all of them
	s.mu.Unlock()
	return lost
}

// vacate lets waiters of lost holds go on.
func vacate(lost []Dependent) {
	for _, h := range lost {
		h.Vacate()
	}
}

// reportLoss reports a loss: with one line in the log, also for a session that is lost without any
// holds, and to the hooks for each hold.
func (s *life) reportLoss(lost []Dependent, cause error) {
	lost = slices.DeleteFunc(lost, func(h Dependent) bool { return !isHeld(h) })
	if text := lossText(len(lost), cause); text != "" {
		s.settings.Log().Warn(text, "session", HexID(s.ds.ID()), "cause", cause, "locks", len(lost), "names", someNames(lost))
	}
	for _, h := range lost {
		h.Report()
	}
}

// isHeld reports whether callers have Locks of a hold, and it is not the client's own.
func isHeld(h Dependent) bool { return h.Name() != "" }

// someNames returns the names of the first holds, sorted, for the log.
func someNames(all []Dependent) string {
	const maxLoggedNames = 5
	var names []string
	for _, h := range all[:min(len(all), maxLoggedNames)] {
		names = append(names, h.Name())
	}
	slices.Sort(names)
	if len(all) > maxLoggedNames {
		names = append(names, "...")
	}
	return strings.Join(names, " ")
}

// holdsNow returns the holds of the session.
func (s *life) holdsNow() []Dependent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.holds))
}

// Held returns how many holds of the session have handles, how many of these are meant to be held
// for long, and for how long the oldest of the others has been held.
func (s *life) Held() (n, leading int, longest time.Duration) {
	for _, h := range s.holdsNow() {
		since := h.Since()
		switch {
		case since.IsZero():
			continue
		case h.Candidacy():
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

// delayLossLocked records that holds are lost now: the nodes of their locks stay for loss_delay. It
// is called before any caller learns of the loss, and so before a caller can close the session.
func (s *life) delayLossLocked(lost []Dependent, cause error) {
	if cause != errs.ErrClosed && slices.ContainsFunc(lost, isHeld) {
		s.lossDelayEnds = lease.Now().Add(s.settings.LossDelay)
	}
}

// awaitLossDelay returns when the nodes of lost locks need not stay: after loss_delay at most.
// Nothing ends the wait earlier.
func (s *life) awaitLossDelay() {
	for {
		s.mu.Lock()
		wait := s.lossDelayEnds.Sub(lease.Now())
		s.mu.Unlock()
		if wait <= 0 {
			return
		}
		time.Sleep(wait)
	}
}
