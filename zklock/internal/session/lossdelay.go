package session

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// A loss delay is a time between the end of a lost lock and the next grant of that lock.
// Requests that the holder has sent to a resource that does not check tokens can arrive
// meanwhile.
//
// The holder's client makes the delay, in two ways:
//
//   - It computes leases from a session timeout that is shorter by loss_delay. The leader
//     expires the session no earlier than a touch plus the full timeout, so the lock is
//     lost at least loss_delay before that.
//   - It keeps the nodes of a lost lock for loss_delay, as long as the session lives. It
//     does not close the session before loss_delay is over, even if the ensemble can be
//     reached. If an All has lost one node, it does not delete the other nodes before then.
//     Meanwhile the driver keeps the session alive; if it cannot, the first point applies.
//
// Other clients do not have to know of it. Waiters wait for nodes to go, as always. A release
// deletes its node at once, as always. No write is added, and no state is kept for a name.
//
// The delay does not cover nodes that are removed from outside: if an operator deletes them
// (also with Break) or ends a session, or if servers expire a session too early.
// It does not cover Close, on purpose: with Close the program says that its work is over,
// and Shutdown is there to wait until it is. A delay that began before Close is kept.

// spare records that locks were lost just now. Their remaining nodes have to stay for
// loss_delay.
func (s *Session) spare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spareLocked()
}

// spareLocked is spare for a caller that holds mu.
func (s *Session) spareLocked() { s.spared = lease.Now().Add(s.settings.LossDelay) }

// awaitSpared returns when the nodes of lost locks do not have to stay any longer. Nothing
// ends the wait earlier; it takes loss_delay at most.
func (s *Session) awaitSpared() {
	for {
		s.mu.Lock()
		wait := s.spared.Sub(lease.Now())
		s.mu.Unlock()
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		<-timer.C
	}
}
