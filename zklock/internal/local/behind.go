package local

import (
	"iter"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Node is a queue node and the lock that it is for.
type Node struct {
	place.Contender
	Name string // of the lock
}

// Behind is a point in the queue of a name. A request that stands behind it waits for all contenders
// ahead of it whose kinds its Mode excludes, and for the node itself if Itself is set.
type Behind struct {
	Node   Node
	Itself bool
}

// waitingPlace is where the leader waits in ZooKeeper's queue.
type waitingPlace struct {
	own     *place.Place    // nil: it does not wait, as far as the local queue knows
	nearest place.Contender // that it waits for
}

// points returns what a request that waits for its turn with that place stands behind, in each of the
// modes. Without modes it is the place's own request, and each name has its own mode. A reader does not
// exclude the readers ahead of a writer that it waits for, but the writer waits for them; so the
// contender that it waits for is a point, too, unless one of the modes excludes all that its mode does: then it says
// nothing new, and changes whenever that contender goes. ok is false if the place does not wait in the queue any
// more.
func (s *waitingPlace) points(names []place.Want, modes queue.Modes) (all []Behind, ok bool) {
	own, ok := s.own.Contenders()
	if !ok {
		return nil, false
	}
	for i, c := range own {
		as := modes
		if as == 0 {
			as = queue.ModesOf(names[i].Kind.Mode)
		}
		covers := false
		for m := range modesOf(as) {
			c.Mode = m
			all = append(all, Behind{Node: Node{c, names[i].Name}})
			covers = covers || m.Covers(s.nearest.Mode)
		}
		if c.Path == s.nearest.Path && s.nearest.Zxid != 0 && !covers {
			all = append(all, Behind{Node: Node{s.nearest, names[i].Name}})
		}
	}
	return all, true
}

// modesOf yields the modes of a set.
func modesOf(s queue.Modes) iter.Seq[queue.Mode] {
	return func(yield func(queue.Mode) bool) {
		for m := queue.Mode(1); m.Known(); m++ {
			if s.Has(m) && !yield(m) {
				return
			}
		}
	}
}
