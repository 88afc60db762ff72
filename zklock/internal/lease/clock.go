package lease

import (
	"sync/atomic"
	"time"
)

// A lease must end even if this machine sleeps: on Linux the monotonic clock
// stands still while the system is suspended, and the ensemble's does not. So
// lease arithmetic happens in instants: time.Now with the time the machine has
// been suspended since the process started added to it. Instants compare only
// with instants; Wall turns one into what time.Now will read then.

// suspendedMax is the longest total suspension seen so far; it only grows, so
// that an unlucky reading never makes a lease longer again.
var suspendedMax atomic.Int64

// Suspended returns for how long the machine has been suspended since the
// process started; 0 where the system does not tell.
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

// Now returns the present instant.
func Now() time.Time { return time.Now().Add(Suspended()) }

// Wall returns when time.Now will have reached the instant i, if the machine
// is not suspended again.
func Wall(i time.Time) time.Time { return i.Add(-Suspended()) }

// AddSuspended has the machine count as suspended for d more. It is for tests.
func AddSuspended(d time.Duration) { suspendedMax.Add(int64(d)) }
