package local

import (
	"iter"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// NamedNode is a queue node and the lock that it is for.
type NamedNode struct {
	place.NodeID
	Name string // of the lock
}

// Behind is a point in the queue of a name. A request that stands behind it waits for all contenders
// ahead of it whose kinds its Mode excludes, and for the node itself if Itself is set.
type Behind struct {
	Node   NamedNode
	Itself bool
}

// waitingPlace is where the leader waits in ZooKeeper's queue.
type waitingPlace struct {
	own     *place.Place // the leader's; nil: as far as the local queue knows, the leader does not wait
	nearest place.NodeID // the contender that the leader waits for
}

// points returns the points that a request stands behind while it waits for its turn with that place, in each of the
// modes. Without modes the request is the place's own, and each name has its own mode. ok is false if the place does
// not wait in the queue any more.
//
// The contender that the place waits for is a point, too. A reader that waits for a writer does not exclude the readers
// ahead of that writer, but the writer waits for them. If the place and one of the modes exclude all that the contender's mode
// excludes, the point would add nothing, and would change with each departure: then points leaves it out. A place that a writer made and that
// readers have taken over excludes what a reader does, also while a writer of this process waits ahead of them.
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
		covers, placed := false, c.Mode
		for m := range modesOf(as) {
			c.Mode = m
			all = append(all, Behind{Node: NamedNode{c, names[i].Name}})
			covers = covers || m.Covers(s.nearest.Mode) && placed.Covers(s.nearest.Mode)
		}
		if c.Path == s.nearest.Path && s.nearest.Zxid != 0 && !covers {
			all = append(all, Behind{Node: NamedNode{s.nearest, names[i].Name}})
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
