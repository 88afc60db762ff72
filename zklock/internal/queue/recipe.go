package queue

// Decide says whether the contender at index self of a queue holds, and if not,
// whose departure (or, for permits, grant) can make it so. It is pure: the queue
// is all that counts, ordered by sequence, oldest first.
//
// An exclusive contender holds when nobody is ahead, and else watches the one
// just ahead: any other can leave without effect on it, so a release wakes one.
//
// A shared contender holds when no exclusive one is ahead, and else watches the
// nearest of these: shared ones between the two cannot hold either.
//
// One of n permits is held by each of the first n. The first in line behind
// them watches all n, since any of them may leave; everybody further back
// watches the one just ahead. When the first in line is granted it marks its own
// node, which wakes the one behind it, now the first in line. So a release wakes
// one, whoever leaves, and none is missed.
//
// The one to watch may leave without having held. Whoever waits decides anew
// then, and never concludes anything from an absence alone.
func Decide(q []Node, self int) (held bool, watch []int) {
	if n := q[self].Kind.Permits; n > 0 {
		switch {
		case self < n:
			return true, nil
		case self > n:
			return false, []int{self - 1}
		}
		watch = make([]int, n)
		for i := range watch {
			watch[i] = i
		}
		return false, watch
	}
	for i := self - 1; i >= 0; i-- {
		if q[self].Kind.Mode == Exclusive || q[i].Kind.Mode == Exclusive {
			return false, []int{i}
		}
	}
	return true, nil
}

// Conflict returns the first contender ahead whose kind does not know that of
// the one at index self: permits and the others, or permits of another number.
// The later one has to give way, or two kinds would hold side by side.
func Conflict(q []Node, self int) (Node, bool) {
	for i := range self {
		if q[i].Kind.Permits != q[self].Kind.Permits {
			return q[i], true
		}
	}
	return Node{}, false
}
