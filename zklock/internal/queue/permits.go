package queue

import (
	"cmp"
	"slices"
)

// Semaphores of one name may have different numbers of permits, as in a rolling deployment that changes the number. The limit of a
// contender is the least number that it and those ahead of it ask for, and it holds while fewer than that count as ahead of it.
// At any moment no more hold than any holder has asked for.
//
// Not all grants come from a look at the queue. One that replaces a contender that was granted, in one transaction, may be granted
// by the count of children: no more of them than it asks for. So it may hold behind contenders that have no turn yet. Its node
// does not say that its client looks, and that client does not know what those ahead ask for. So it counts as ahead of
// each whose limit is smaller than what it asks for: see overtakes. If the count does not grant it, and one ahead asks for
// fewer, it leaves the queue and comes again as one that looks; so two never count each other as ahead for long.
//
// Why no more hold. For a holder u let c be the number of those that hold or are ahead of u. A holder that looked has c ≤ its limit; one by
// the count has c ≤ what it asks for. Departures lower c, and may raise the limit. A replacement takes one holder away for each that
// it adds, and the count is c for the new one. A look that grants i adds i to c of the holders ahead of it, and to no
// other. If a holder u behind i does not count as ahead of i, then c of u had i and all holders and was within i's limit: u has looked,
// and its limit is not larger; or it asks for no more than i's limit. If all behind count, then c of i is what counts as ahead of
// it, and itself: within its limit again. What is within i's limit is within that of each ahead of it.
//
// Clients of earlier versions are holders by these rules, too. They are granted by a look only if all in the queue ask for the
// same number, and fail otherwise; their nodes never say that they look.

// limit returns how many may hold together with the contender at index self of a semaphore's queue.
func limit(q []Node, self int) int {
	n := q[self].Kind.Permits
	for i := range self {
		n = min(n, q[i].Kind.Permits)
	}
	return n
}

// overtakes reports whether a contender counts as ahead of one that it is behind, whose limit is given.
func (n Node) overtakes(limit int) bool { return n.Kind.Permits > limit && !n.Looks() }

// Lowered reports whether a contender ahead of self asks for fewer permits than self does.
func Lowered(q []Node, self int) bool { return limit(q, self) < q[self].Kind.Permits }

// Position returns how many contenders count as ahead of the one at index self.
func Position(q []Node, self int) int {
	position := self
	if q[self].Kind.Permits > 0 {
		most := limit(q, self)
		for i := self + 1; i < len(q); i++ {
			if q[i].overtakes(most) {
				position++
			}
		}
	}
	return position
}

// surelyWaits reports whether the contender at index i of a semaphore's queue has had no turn. Else it may hold.
func surelyWaits(q []Node, i int) bool {
	most := limit(q, i)
	return i >= most && !q[i].overtakes(most)
}

// decidePermit is Decide for a permit.
//
// As many of the first in line as window watch those ahead of them, and look when they may hold. If all ask for one number, a contender
// watches all that are ahead. When it may hold, fewer than its limit of these are left, so it looks when that many
// have left, and not before. Else it watches the last of them only, as many as its limit, and looks when one of these
// has left: it may hold after one such departure at the earliest. If it asks for more than its limit, it also watches the last
// that sets the limit, which is there while the limit lasts.
//
// Each contender further back watches one, window places ahead of it. When one of the first in line is granted a permit, it marks its own node;
// that wakes the contender that watches it, which is now one of the first in line. No waiter is missed: while a contender could
// hold, so could each ahead of it. A node needs
// no mark if its client has never seen it wait. It may have waited unseen, for one that asks for fewer: so the nearest
// such is watched, too, unless more than it asks for were in the queue when it came: then it is marked.
//
// With a window of 1, a release wakes one waiter, no matter which holder leaves, and permits are granted one after another: the next in line
// learns of a grant by the mark. Contenders of one queue may have different windows: each one's rule holds whatever those of others are.
func decidePermit(q []Node, self, window int) (held bool, wait Watchlist) {
	most, ahead := limit(q, self), Position(q, self)
	if ahead < most {
		return true, Watchlist{}
	}
	if before := self - window; before >= 0 && surelyWaits(q, before) {
		for i := before - 1; i >= 0 && before < q[before].Kind.Permits; i-- {
			if q[i].Kind.Permits < q[before].Kind.Permits {
				return false, Watchlist{On: []int{i, before}, Grant: true}
			}
		}
		return false, Watchlist{On: []int{before}, Grant: true}
	}
	last, setter := ahead-most, -1
	switch {
	case q[self].Kind.Permits > most:
		for setter = self - 1; q[setter].Kind.Permits != most; setter-- {
		}
	case ahead == self && last < window:
		wait.Spare, last = last, 0
	}
	n := 0
	for i := range q {
		if i >= self && (i == self || !q[i].overtakes(most)) {
			continue
		}
		if n >= last || i == setter {
			wait.On = append(wait.On, i)
		}
		n++
	}
	return false, wait
}

// holdPermits notes which contenders for permits hold. The limits fall from the front to the back: so each contender that was not
// granted by a look begins to count once, and ends at its own index.
func holdPermits(q []Node, held []bool) {
	var counted []int // by their numbers, the largest first
	for i := range q {
		if q[i].Kind.Permits > 0 && !q[i].Looks() {
			counted = append(counted, i)
		}
	}
	slices.SortFunc(counted, func(a, b int) int { return cmp.Compare(q[b].Kind.Permits, q[a].Kind.Permits) })
	behind, next, most := 0, 0, 0
	for i := range q {
		if i > 0 && q[i].overtakes(most) {
			behind-- // it was one of them
		}
		if most = min(most, q[i].Kind.Permits); i == 0 {
			most = q[i].Kind.Permits
		}
		for ; next < len(counted) && q[counted[next]].Kind.Permits > most; next++ {
			if counted[next] > i {
				behind++
			}
		}
		held[i] = q[i].Kind.Permits > 0 && i+behind < most
	}
}
