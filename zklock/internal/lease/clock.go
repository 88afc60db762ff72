package lease

import (
	"sync/atomic"
	"time"
)

// A lease must also end while this machine is suspended. On Linux the monotonic clock
// stands still during a suspension, and the ensemble's clocks do not. So leases are
// computed in instants. An instant is a time of time.Now plus the total time for which
// the machine has been suspended since the process started. Instants may be compared
// with instants only. Wall converts an instant into the time that time.Now will return
// at that moment.

// suspendedMax is the longest total suspension that was read so far. It only grows, so
// that an inexact reading never makes a lease longer again.
var suspendedMax atomic.Int64

// Suspended returns for how long the machine has been suspended in total since the
// process started; 0 on systems that do not report it.
func Suspended() time.Duration {
	d := int64(suspendGrowth())
	for {
		seen := suspendedMax.Load()
		if d <= seen {
			return time.Duration(seen)
		}
		if suspendedMax.CompareAndSwap(seen, d) {
			return time.Duration(d)
		}
	}
}

// Now returns the current instant.
func Now() time.Time { return time.Now().Add(Suspended()) }

// Wall returns the time that time.Now will return at the instant i, if the machine is not
// suspended again before that.
func Wall(i time.Time) time.Time { return i.Add(-Suspended()) }

// AddSuspended makes the machine count as suspended for d longer. It is for tests.
func AddSuspended(d time.Duration) { suspendedMax.Add(int64(d)) }
