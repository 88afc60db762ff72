package queue

import (
	"slices"
	"strconv"
	"strings"
)

// Names of queue nodes are, in the default dialect, those of Curator's
// InterProcessReadWriteLock, so that its locks and ours exclude each other:
//
//	_c_<uuid>-__WRIT__<10 digits>      wants the lock alone
//	_c_<uuid>-__READ__<10 digits>      wants it together with other readers
//	_c_<uuid>-__PERM<n>__<10 digits>   wants one of n permits; Curator has no such nodes
//
// By the UUID a client finds its node again after a create whose reply was lost. The UUID
// consists of the session's id and a counter, so that a client never takes a node of
// another session for its own, not even of another session of the same process.
const (
	protectedPrefix = "_c_"
	writeMarker     = "__WRIT__"
	readMarker      = "__READ__"
	permitMarker    = "__PERM"
	markerEnd       = "__"
	uuidLen         = 36
	suffixLen       = 10
)

// MaxSequence is the sequence number from which on a name's numbers count as used up.
// Servers from 3.6 on repeat 2^31-1 once they reach it, and older servers go on with
// negative numbers; in both cases the numbers no longer show the order of the queue. The
// last 2^20 numbers before that are left unused.
const MaxSequence = 1<<31 - 1<<20

// marker returns the part of a queue node's name that says which kind of lock it wants.
func (k Kind) marker() string {
	switch k.Mode {
	case Shared:
		return readMarker
	case Permit:
		return permitMarker + strconv.Itoa(k.Permits) + markerEnd
	}
	return writeMarker
}

// Node is what Decide needs to know of a queue node.
type Node struct {
	Name string
	Seq  int64
	Kind Kind
	GUID GUID // zero if the node's name has none
}

// MayBeKept reports whether the contender's client may keep it in the queue while no
// goroutine uses it.
func (n Node) MayBeKept() bool { return n.GUID.ours() && n.GUID.Serial&keepBit != 0 }

// cutMarker splits a node's name around its last marker.
func cutMarker(node string) (head, suffix string, k Kind, ok bool) {
	if i := strings.LastIndex(node, writeMarker); i >= 0 {
		return node[:i], node[i+len(writeMarker):], Kind{Mode: Exclusive}, true
	}
	if i := strings.LastIndex(node, readMarker); i >= 0 {
		return node[:i], node[i+len(readMarker):], Kind{Mode: Shared}, true
	}
	if i := strings.LastIndex(node, permitMarker); i >= 0 {
		digits, suffix, found := strings.Cut(node[i+len(permitMarker):], markerEnd)
		if n, err := strconv.Atoi(digits); found && err == nil && n > 0 && strconv.Itoa(n) == digits {
			return node[:i], suffix, Kind{Mode: Permit, Permits: n}, true
		}
	}
	return "", "", Kind{}, false
}

func parseSuffix(s string) int64 {
	if len(s) != suffixLen {
		return MaxSequence
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return MaxSequence
		}
		n = n*10 + int64(s[i]-'0')
	}
	return min(n, MaxSequence)
}

// Sort puts contenders in the order in which they get the lock: by sequence number. The
// GUID in front of the number does not matter.
func Sort(q []Node) {
	slices.SortFunc(q, func(a, b Node) int { return int(a.Seq - b.Seq) })
}
