package place

import (
	"slices"
	"sync/atomic"
)

// state is the state of a place. moveLocked changes it, and only in the ways of this
// table:
//
//	from     to       when
//	opening  queued   its nodes exist, with or without other contenders in the queue
//	opening  leaving  its creation failed or was given up, or the created place was refused
//	queued   held     its turn has come
//	queued   leaving  no goroutine waits with it, or a writer would be next in a reader's
//	held     spent    the hold was released
//	held     deleted  another client has deleted a node
//	spent    held     it is handed over to the next goroutine of this process
//	spent    kept     no goroutine of this process wants it, and the client keeps it for the next one
//	spent    reserved it could be handed over, but the lease is not long enough at the moment
//	spent    leaving  it is released, or replaced by a new place at the tail
//	spent    deleted  another client has deleted a node
//	kept     spent    a goroutine of this process wants it, or the client gives it up
//	kept     deleted  another client has deleted a node
//	reserved resumed  the next goroutine has taken it up, and waits for the lease
//	reserved leaving  no goroutine takes it up, or the next one does not use this session
//	reserved deleted  another client has deleted a node
//	resumed  held     the lease is long enough again
//	resumed  leaving  that goroutine gave up: it is not taken up twice, but replaced
//	resumed  deleted  another client has deleted a node
//
// Invariants:
//   - A place has a hold, which its session counts, if and only if it is held or kept. While it is
//     kept, the client itself has that hold, and no caller has a Lock of it.
//   - No move leads out of leaving and deleted. The session's end moves kept places only, to spent.
//   - Moves are made under the desk's mu.
//   - A move that the table does not have is refused, and has no effect. So a caller may
//     give up a place that is deleted, or report the loss of one that is leaving.
type state int32

const (
	opening  state = iota // its creates are under way, or their outcome is open
	queued                // it waits for its turn
	held                  // a hold has it
	spent                 // its hold is over, and no other hold has it
	kept                  // no goroutine of this process uses it: see Keep
	reserved              // the next goroutine of this process may take it up as it is
	resumed               // that goroutine has taken it up, and waits for the lease
	leaving               // this client deletes its nodes, or they go with the session
	deleted               // another client has deleted a node; the other nodes are removed
)

// next has the states that may follow each state.
var next = [...][]state{
	opening:  {queued, leaving},
	queued:   {held, leaving},
	held:     {spent, deleted},
	spent:    {held, kept, reserved, leaving, deleted},
	kept:     {spent, deleted},
	reserved: {resumed, leaving, deleted},
	resumed:  {held, leaving, deleted},
	leaving:  nil,
	deleted:  nil,
}

// life holds the state of a place.
type life struct{ current atomic.Int32 }

// state returns the state. If the desk's mu is not held, that may change at once.
func (l *life) state() state { return state(l.current.Load()) }

// ending reports whether the place is leaving or deleted.
func (l *life) ending() bool { return l.state() >= leaving }

// moveLocked changes the state and returns true. If the table does not have the move, it
// leaves the state as it is and returns false. The desk's mu is held.
func (l *life) moveLocked(to state) bool {
	if !slices.Contains(next[l.state()], to) {
		return false
	}
	l.current.Store(int32(to))
	return true
}
