package zklock

// decide says whether the contender at index self of a queue holds the lock,
// and if not, the change of which contender can make it so. It is pure: the
// queue is all that counts, ordered by sequence, oldest first.
//
// An exclusive contender holds when nobody is ahead, and else watches the one
// just ahead: any other can leave without effect on it, so a release wakes one.
// A shared contender holds when no exclusive one is ahead, and else watches the
// nearest of these: shared ones ahead of it and behind that one cannot hold
// either.
//
// The one to watch may leave without having held. Whoever waits decides anew
// when it is gone, and never concludes anything from its absence alone.
func decide(q []queued, self int) (held bool, watch int) {
	for i := self - 1; i >= 0; i-- {
		if q[self].mode == Exclusive || q[i].mode == Exclusive {
			return false, i
		}
	}
	return true, -1
}
