package operator

import (
	"slices"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// WaitsFor returns the positions of the contenders that one waits for, the nearest first, by the
// rules of the queue. A reader waits for the nearest writer ahead. A writer waits for the readers
// directly ahead, or else for the writer that is. The first in line for a permit waits until one of
// all holders leaves, which one reports, and the others for the one ahead of them. A holder waits
// for none.
//
// Contenders of another recipe do not count: no recipe sees the nodes of another one. Those of
// another library with the same recipe do.
func WaitsFor(queue []zklock.Contender, self int) (ahead []int, one bool) {
	c := queue[self]
	if c.Held {
		return nil, false
	}
	for n, other := range slices.Backward(queue[:self]) {
		shared := other.Mode == zklock.Shared
		switch {
		case recipe(other.Node) != recipe(c.Node) || c.Mode == zklock.Shared && shared:
			continue
		case len(ahead) > 0 && c.Mode == zklock.Exclusive && !shared:
			return ahead, false // the readers wait for this writer
		}
		ahead = append(ahead, n)
		switch {
		case c.Mode == zklock.Exclusive && shared:
		case c.Mode == zklock.Permit && other.Held:
			one = true
		default:
			return ahead, one
		}
	}
	return ahead, one && len(ahead) > 1
}

// recipe returns the recipe that a queue node belongs to. "zklock" is also that of Curator's
// InterProcessReadWriteLock.
func recipe(node string) string {
	for _, r := range []struct{ marker, of string }{{"__WRIT__", "zklock"}, {"__READ__", "zklock"}, {"__PERM", "zklock"}, {"__lock__", "kazoo"}, {"__rlock__", "kazoo"}, {"latch-", "latch"}} {
		if strings.Contains(node, r.marker) {
			return r.of
		}
	}
	return "mutex" // Curator's InterProcessMutex and go-zookeeper's Lock
}
