// Package blocking says which contenders of a queue block each other.
package blocking

import (
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// Of returns the positions of the contenders that one waits for, the nearest first, by the rules of
// the queue: a reader waits for the nearest writer ahead, the first in line for a permit for all
// holders, and every other contender for the one ahead of it. Contenders of another recipe do not
// count: no recipe sees the nodes of another one. Those of another library with the same recipe do.
// A holder waits for none.
func Of(queue []zklock.Contender, self int) (ahead []int) {
	c := queue[self]
	if c.Held {
		return nil
	}
	for n := self - 1; n >= 0; n-- {
		other := queue[n]
		if recipe(other.Node) != recipe(c.Node) || c.Mode == zklock.Shared && other.Mode == zklock.Shared {
			continue
		}
		ahead = append(ahead, n)
		if c.Mode != zklock.Permit || !other.Held {
			break
		}
	}
	return ahead
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
