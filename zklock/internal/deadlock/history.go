package deadlock

import (
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// longestPause is how long a wait that changes all the time has a registration, if deadlock_timeout is short.
const longestPause = 10 * time.Second

// history says when a wait is registered again. In a busy queue each grant changes what all waits of the process
// stand behind, and a registration for each change would cost two writes for each wait and grant. A deadlock
// changes nothing any more. So the detector registers a wait again if the wait has been the same for deadlock_timeout.
// A wait that does not come to rest, since requests ahead of it give up again and again, may be in a circle
// nevertheless. The detector registers such a wait again after pauses that grow up to longestPause.
type history struct {
	nested Nested        // as the last round has found the wait
	since  time.Time     // since when rounds have found it so
	made   time.Time     // when it was registered last
	pause  time.Duration // after that it is registered again, also if it changes all the time
}

// note notes what a round has found.
func (h *history) note(n *Nested, now time.Time) {
	if h.since.IsZero() || !h.nested.equal(n) {
		h.nested, h.since = *n, now
	}
}

// due reports whether a registration may be made. The first may be made at once.
func (h *history) due(now time.Time, timeout time.Duration) bool {
	steady := now.Sub(h.since) >= timeout && now.Sub(h.made) >= timeout
	return h.made.IsZero() || steady || now.Sub(h.made) >= h.pause // TestCircleBehindRequestsThatGiveUp; TestCircleThatClosesInABusyQueue
}

// registers notes that a registration is made.
func (h *history) registers(now time.Time, timeout time.Duration) {
	h.made = now
	h.pause = max(4*timeout, min(2*h.pause, longestPause))
}

// misleads reports whether a registration that says this must not stay although the wait is not registered again
// yet: it lists a lock that the wait does not hold, or a mode in which it waits no longer, such as that of a writer
// ahead of a reader in the local queue, which has given up.
func (n *Nested) misleads(now *Nested) bool {
	if !slices.Equal(n.Held, now.Held) {
		return true
	}
	modes, at := make(map[string]queue.Modes), make(map[int64]queue.Modes) // by the path, and by the node
	for _, b := range now.Behind {
		modes[b.Node.Path] |= queue.ModesOf(b.Node.Mode)
		at[b.Node.Zxid] |= queue.ModesOf(b.Node.Mode)
	}
	return slices.ContainsFunc(n.Behind, func(b local.Behind) bool {
		waits, stays := at[b.Node.Zxid]
		if !stays { // the second look finds a node that is gone
			waits = modes[b.Node.Path]
		}
		return !waits.Has(b.Node.Mode)
	})
}
