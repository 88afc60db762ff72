package place

import (
	"math"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Handover is what a client knows of a place that had a holder. The rules of hand-over, of
// joining and of keeping depend on nothing else, apart from the session's lease. The rules are
// pure.
type Handover struct {
	Mode      queue.Mode    // what the place's node grants
	Doubtful  bool          // a Txn under the place may still be applied, or a registered wait may still list its last hold: see KeepBack in package local
	Revoked   bool          // the holder was asked to give the lock back
	Keepable  bool          // the place may be kept, as far as its creation shows
	Open      bool          // the client watches for other contenders, and there are none: no limit of hand-over counts
	Others    bool          // another contender is, or may be, in the queue
	Turn      uint32        // of the next holder
	Handovers int           // since the limits have counted
	Limited   time.Duration // for how long the limits of hand-over have counted; not set if the place is open
}

// Grants reports whether the place can have a holder of a mode, however long it has been held:
// the node grants the mode, no Txn under the place is in doubt, the place is not revoked, and
// there are turns left.
func (s Handover) Grants(mode queue.Mode) bool {
	return s.Mode.Covers(mode) && !s.Doubtful && !s.Revoked && s.Turn < lastTurn
}

// MayPass reports whether a place may be handed over to a holder of a mode, apart from the lease,
// which Grant checks. Grants has the conditions that always count. To be fair to other processes,
// the time within must not have passed since the first grant, and there were fewer than limit
// hand-overs if other contenders queue, or may queue. While the place is open, no limit counts.
// After a recall the limits count from that moment on.
func (s Handover) MayPass(mode queue.Mode, limit int, within time.Duration) bool {
	switch {
	case !s.Grants(mode):
		return false
	case s.Open:
		return true
	case s.Limited >= within:
		return false
	}
	return !s.Others || s.Handovers < limit
}

// MayJoin is the rule of Place.MayJoin.
func (s Handover) MayJoin(within time.Duration) bool {
	return !s.Revoked && (s.Open || s.Limited < within)
}

// MayBeKept is the rule of Keep.
func (s Handover) MayBeKept() bool {
	return s.Keepable && !s.Others && !s.Doubtful && !s.Revoked && s.Turn < lastTurn
}

// lastTurn is the turn of a place's last holder. A Downgrade needs one turn more.
const lastTurn = math.MaxUint32 - 1
