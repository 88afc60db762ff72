package queue

import (
	"slices"
	"strconv"
)

// A name's sequence numbers are used up when they reach MaxSequence. Servers from 3.6 on repeat
// 2^31-1 once they reach it, and older servers go on with negative numbers; in both cases the
// numbers no longer show the order of the queue. The last 2^20 numbers before that are left
// unused.
const MaxSequence = 1<<31 - 1<<20

// Node is what Decide needs to know of a queue node.
type Node struct {
	Name string
	Seq  int64
	Kind Kind
	GUID GUID // zero if the node's name has none
}

// Ours reports whether a contender was made by this library. A random UUID does not pass for one
// of its GUIDs: the variant's bits are set where a serial number has zeros.
func (n Node) Ours() bool { return n.GUID != GUID{} && n.GUID.Serial>>48 == 0 }

// MayBeKept reports whether the contender's client may keep it in the queue while no
// goroutine uses it.
func (n Node) MayBeKept() bool { return n.Ours() && n.GUID.Serial&keepBit != 0 }

// Looks reports whether a contender for a permit holds only after a look at the queue. Those of earlier versions
// do not say so.
func (n Node) Looks() bool { return n.Ours() && n.GUID.Looks() }

// Sort puts contenders in the order of the queue, that of their sequence numbers. The GUID in
// front of the number does not matter.
func Sort(q []Node) {
	slices.SortFunc(q, func(a, b Node) int { return int(a.Seq - b.Seq) })
}

// sequenceLen is the length of the suffix that a server appends to a node's name.
const sequenceLen = 10

// sequence reads the suffix that a server has appended to a node's name: ten digits, or, from
// servers before 3.6, a negative number, read as MaxSequence. ok is false for any other suffix.
func sequence(s string) (n int64, ok bool) {
	negative := len(s) > 0 && s[0] == '-'
	if len(s) != sequenceLen && !(negative && len(s) == 1+sequenceLen) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if negative {
		n = MaxSequence
	}
	return min(n, MaxSequence), err == nil && s[0] != '+'
}
