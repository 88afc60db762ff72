package place

import (
	"slices"
	"sync/atomic"
)

// state is where a place is in its life. moveLocked goes from one to the next, and only
// as this table says:
//
//	from     to       when
//	opening  queued   its nodes are there, alone or among others
//	opening  leaving  its creation failed, was given up, or is refused for what it turned out to be
//	queued   held     its turn has come
//	queued   leaving  nobody waits with it any more, or it is a reader's and a writer is next
//	held     spent    the hold is over: released, or lost with the session
//	held     deleted  another client has deleted a node
//	spent    held     it is handed over to the next one in this process
//	spent    reserved it would be, but for the lease, which is not long enough just now
//	spent    leaving  it is released, or replaced by a new one at the tail
//	spent    deleted  another client has deleted a node
//	reserved resumed  the next one has taken it up, and waits for the lease
//	reserved leaving  nobody takes it up, or not on this session
//	reserved deleted  another client has deleted a node
//	resumed  held     the lease is long enough again
//	resumed  leaving  who has taken it up gave up; it is not taken up twice, but replaced
//	resumed  deleted  another client has deleted a node
//
// Invariants:
//   - A place has a hold if and only if it is held.
//   - Nothing leads out of leaving and deleted: such a place is never held again, and
//     nobody has to watch its nodes. A place whose session has ended stays as it is.
//   - Moves are made under the session's mutex.
//   - A move that the table does not have is refused, and nothing happens: who gives up a
//     place that is deleted, or loses one that is leaving, need not know.
type state int32

const (
	opening  state = iota // its creates are under way, or their outcome is open
	queued                // it waits for its turn
	held                  // a hold has it
	spent                 // its hold is over, and nobody has it
	reserved              // the next one in this process may have it as it is
	resumed               // that one has taken it up, and waits for the lease
	leaving               // this client deletes its nodes, or they go with the session
	deleted               // another client has deleted a node; what is left is removed
)

// next has, for each state, those that may follow.
var next = [...][]state{
	opening:  {queued, leaving},
	queued:   {held, leaving},
	held:     {spent, deleted},
	spent:    {held, reserved, leaving, deleted},
	reserved: {resumed, leaving, deleted},
	resumed:  {held, leaving, deleted},
	leaving:  nil,
	deleted:  nil,
}

// life is the state of a place.
type life struct{ now atomic.Int32 }

// is returns the state. It may be another one by the time of the answer, unless the
// session's mutex is held.
func (l *life) is() state { return state(l.now.Load()) }

// ending reports whether the place is on its way out, one way or the other.
func (l *life) ending() bool { return l.is() >= leaving }

// moveLocked changes the state, unless the table has no such move: then it stays as it
// is, and the answer is false. The session's mutex is held.
func (l *life) moveLocked(to state) bool {
	if !slices.Contains(next[l.is()], to) {
		return false
	}
	l.now.Store(int32(to))
	return true
}
