package session

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// A loss delay is time between the end of a lock that was lost and the next
// grant: whatever its holder had under way can arrive meanwhile, at a resource
// that does not check tokens.
//
// It is made at the holder, by what it says and what it leaves alone:
//
//   - Its leases are those of a session timeout that is shorter by loss_delay.
//     The leader expires the session no earlier than a touch plus the timeout,
//     and the lock is lost loss_delay before that, at the latest.
//   - The nodes of a lock that was lost stay for loss_delay, if it is up to this
//     client: the session is not closed before, even if it can be reached, and
//     the other nodes of an All that lost one of them are not deleted before.
//     Until then the driver keeps the session alive; if it cannot, see above.
//
// Nobody else has to know. Waiters wait for nodes to go, as always; a release
// deletes its node at once, as always; no write is added, and nothing is left
// of a name.
//
// A delay at the waiter, which is what it looks like from there, cannot be made
// right by these means. To a waiter a released node and one that expired are
// the same, a node that is gone. To tell them apart, each release would have to
// leave a mark, or each loss would have to be found in what is left: state for
// every name ever used, which must outlive the name's znode, because whoever
// comes next may find an empty queue and hold after one round trip. That one
// would have to read it each time, and could not tell from it how long ago the
// loss was, except by other machines' clocks. And contenders of other recipes
// would not wait at all.
//
// What removes nodes from outside is not covered: an operator who deletes them
// (Break too) or ends a session, or servers that expire one before its time.
// Close is not covered on purpose: it is the word of the program that the work
// is over, and Shutdown is there to wait until it is. What a lost lock was
// promised before Close is kept.

// Spare notes that locks were lost just now, and that the nodes which are left
// of them have to stay for loss_delay.
func (s *Session) Spare() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.SpareLocked()
}

// SpareLocked is Spare; the session's Mu is held.
func (s *Session) SpareLocked() { s.spared = lease.Now().Add(s.settings.LossDelay) }

// awaitSpared returns when no lost lock's nodes have to stay any more. Nothing
// cuts it short; it takes loss_delay at most.
func (s *Session) awaitSpared() {
	for {
		s.Mu.Lock()
		wait := s.spared.Sub(lease.Now())
		s.Mu.Unlock()
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		<-timer.C
	}
}
