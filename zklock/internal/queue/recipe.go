package queue

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Watchlist is what a contender that does not hold waits for.
type Watchlist struct {
	On    []int // the indexes of the contenders to watch, in order, at least one
	Spare int   // so many of them may leave before the contender has to look at the queue again
	Grant bool  // the last of them waits, too, and its grant is to be seen: see decidePermit
}

// Decide reports whether the contender at index self of a queue holds the lock. If it does
// not, Decide returns what it waits for: the contenders whose departure (or, for
// permits, whose grant) can let self hold. q is ordered by sequence number, oldest first,
// and nothing else matters for the decision. window, at least 1, is for permits: see decidePermit.
//
// A contender holds if no contender that it excludes is ahead of it: see Mode.Excludes. Else it watches
// the nearest of those. While that one is there, the departure of any other changes nothing for self.
//
// So an exclusive contender watches the one just ahead, and a release wakes one waiter. A shared
// contender watches the nearest exclusive one ahead: shared contenders between the two cannot hold
// either.
//
// For permits see decidePermit.
//
// A watched contender may leave without ever having held the lock. The waiter then decides
// again, and never concludes from a contender's absence alone that its turn has come.
func Decide(q []Node, self, window int) (held bool, wait Watchlist) {
	if q[self].Kind.Permits > 0 {
		return decidePermit(q, self, window)
	}
	for i := self - 1; i >= 0; i-- {
		if q[self].Kind.Mode.Excludes(q[i].Kind.Mode) {
			return false, Watchlist{On: []int{i}}
		}
	}
	return true, Watchlist{}
}

// Holders reports of each contender of a queue whether it holds, as Decide does.
func Holders(q []Node) []bool {
	held := make([]bool, len(q))
	holdPermits(q, held)
	var ahead Modes
	for i := range q {
		m := q[i].Kind.Mode
		if q[i].Kind.Permits == 0 {
			held[i] = excluded[m]&ahead == 0
		}
		ahead |= ModesOf(m)
	}
	return held
}

// First reports whether the contender at index self is the first in line: no contender ahead
// of it waits. Those that self does not exclude do not count: they can be granted together
// with it. Of the contenders that do not hold, only the first in line can be granted next.
//
// So the first in line is, if the contenders at the front hold:
//
//   - of exclusive contenders, the one behind the holder, or behind the shared holders;
//   - of shared contenders, each one whose nearest exclusive contender is at the front;
//   - for n permits, the one at index n.
func First(q []Node, self int) bool {
	if q[self].Kind.Permits > 0 {
		return self == 0 || !surelyWaits(q, self-1)
	}
	var ahead Modes
	for i := range self {
		m := q[i].Kind.Mode
		if q[self].Kind.Mode.Excludes(m) && excluded[m]&ahead != 0 {
			return false // it waits
		}
		ahead |= ModesOf(m)
	}
	return true
}

// Conflict returns an error that matches ErrConflict if a contender ahead of self is of a kind that
// is not compatible with that of self: one is for a permit and the other is not. Contenders of incompatible kinds do not wait for
// each other, so the later one has to give way, or both would hold at the same time. The earlier one gives way, too, if
// it would hold: a permit behind it may hold, when it has replaced one without a look at the queue.
func Conflict(q []Node, self int) error {
	held, decided := false, false
	for i := range q {
		if (q[i].Kind.Permits > 0) == (q[self].Kind.Permits > 0) {
			continue
		}
		if i > self && !decided { // once for all of them
			held, _ = Decide(q, self, 1)
			decided = true
		}
		if i < self || held && q[i].Kind.Permits > 0 {
			return fmt.Errorf("%w: %s is in the queue and wants %v; all clients have to use one kind of lock for a name",
				errs.ErrConflict, q[i].Name, q[i].Kind)
		}
	}
	return nil
}
