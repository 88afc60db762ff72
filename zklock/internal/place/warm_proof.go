package place

// Proof is what a client knows of a contender that it has created without a set of the
// parent, when it has read the reply: the conditions in warm.go. The rule is pure, and the
// checked model calls the same one: see package model.
type Proof struct {
	Before   int64 // the suffix of our contender before
	Suffix   int64 // the suffix of the new contender
	Doubtful bool  // the outcome of the create was unknown at some time: twins may appear
	GoneBy   int64 // the zxid of the transaction that has deleted the contender before; 0: it may still be there
	Zxid     int64 // of the create; 0: not known
	Watched  bool  // the watch on the parent holds, on the connection of the reply
}

// Follows reports whether a contender's suffix is the next after that of the contender before.
// Then nothing was created below the same parent in between.
func Follows(before, suffix int64) bool { return suffix == before+1 }

// Alone reports whether the new contender is alone in the queue. Its old node must have been
// deleted before: else a Txn under that may still be applied. Doubtful and Zxid are second lines,
// which no test can show to be needed: a twin takes a suffix, and no delete has a transaction id
// that is at most 0.
func (p Proof) Alone() bool {
	return Follows(p.Before, p.Suffix) && !p.Doubtful && p.Zxid != 0 &&
		p.GoneBy != 0 && p.GoneBy <= p.Zxid && p.Watched
}

// ArmedFor reports whether a read of the parent arms a watch for what a contender proves: the
// node that was read, with the transaction id read, is the parent of that contender.
func ArmedFor(read, parent int64) bool { return read == parent }
