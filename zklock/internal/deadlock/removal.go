package deadlock

import "sync/atomic"

// removal says whether a registration is being removed, and by which goroutine. The zero removal is that of a
// registration that stays. A removal is safe for concurrent use.
type removal struct{ stage atomic.Int32 }

// Stages of a removal.
const (
	stays    = iota
	judged   // the look removes it, if a circle stands: see Detector.commits
	unwanted // as judged; it is removed also if no circle stands
	goes
)

// begin reports whether the caller has to remove the registration, since no other goroutine does.
func (r *removal) begin() bool {
	for {
		switch {
		case r.stage.CompareAndSwap(stays, goes):
			return true
		case r.stage.CompareAndSwap(judged, unwanted), r.stage.Load() >= unwanted:
			return false
		}
	}
}

// judge reports whether the look may remove the registration: its wait has not ended, and no holder is releasing a lock
// that the registration lists. The look then calls confirm or refute.
func (r *removal) judge() bool { return r.stage.CompareAndSwap(stays, judged) }

// confirm notes that the registration is gone. It reports whether that was for the look alone.
func (r *removal) confirm() bool { return r.stage.Swap(goes) == judged }

// refute notes that the look has not removed the registration. It reports whether the caller has to do that.
func (r *removal) refute() bool {
	return !r.stage.CompareAndSwap(judged, stays) && r.stage.CompareAndSwap(unwanted, goes)
}
