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
//	opening  leaving  its creation failed, was given up, or is not known to have been applied
//	queued   held     its turn has come
//	queued   leaving  nobody waits with it any more
//	held     spent    the hold is over: released, or lost with the session
//	spent    held     it is handed over to the next one in this process
//	spent    reserved it would be, but for the lease, which is not long enough just now
//	spent    leaving  it is released, or replaced by a new one at the tail
//	reserved spent    the one it is reserved for has taken it up, and waits for the lease
//	reserved leaving  that one has given up
//	any      deleted  another client has deleted a node, and the place was not leaving
//
// Invariants:
//   - A place has a hold if and only if it is held.
//   - Nothing leads out of leaving and deleted: such a place is never held again, and
//     nobody watches its nodes.
//   - Moves are made under the session's mutex. Whoever has only to know whether it is on
//     its way out reads without.
type state int32

const (
	opening  state = iota // its creates are under way, or their outcome is open
	queued                // it waits for its turn
	held                  // a hold has it
	spent                 // its hold is over, and nobody has it
	reserved              // it is spent, and the next one in this process may have it as it is
	leaving               // this client deletes its nodes, or they go with the session
	deleted               // another client has deleted a node; what is left is removed
)

// next has, for each state, those that may follow.
var next = [...][]state{
	opening:  {queued, leaving, deleted},
	queued:   {held, leaving, deleted},
	held:     {spent, deleted},
	spent:    {held, reserved, leaving, deleted},
	reserved: {spent, leaving, deleted},
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
