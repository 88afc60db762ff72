package lease

import (
	"sync/atomic"
	"time"
)

// A lease must also end while this machine is suspended. On Linux the monotonic clock stands still
// during a suspension, and the ensemble's clocks do not. So leases are computed in instants. An
// instant is a time of time.Now plus the total time that the machine has spent suspended since the
// process started. Instants may be compared with instants only. Wall converts an instant into the
// time that time.Now will return at that moment.

// suspendedMax is the longest total suspension that was read so far. It only grows, so
// that an inexact reading never makes a lease longer again.
var suspendedMax atomic.Int64

// Suspended returns for how long the machine has been suspended in total since the
// process started; 0 on systems that do not report it.
func Suspended() time.Duration {
	d := int64(suspendGrowth())
	for {
		seen := suspendedMax.Load()
		if d <= seen || suspendedMax.CompareAndSwap(seen, d) {
			return time.Duration(max(seen, d))
		}
	}
}

// Now returns the current instant.
//
// Suspended asks the system for two clocks, which takes several times as long as time.Now. Now
// leaves that out if the wall clock shows that it is not needed. A suspension moves the wall clock
// forward against the monotonic one. So if the two have kept their distance since Suspended was
// last asked, the machine was not suspended since then, or something has set the wall clock back
// by the length of the suspension, to the millisecond. Now excludes the latter too, in practice,
// by asking again after ten milliseconds.
func Now() time.Time {
	t := time.Now()
	ran := t.Sub(start)
	skew := t.UnixNano() - int64(ran)
	if since := int64(ran) - askedAt.Load(); since >= 0 && since < askEvery && time.Duration(skew-askedSkew.Load()).Abs() < maxSkew {
		return t.Add(time.Duration(suspendedMax.Load()))
	}
	d := Suspended()
	// The order matters: a goroutine that sees the new time compares with the new skew.
	askedSkew.Store(skew)
	askedAt.Store(int64(ran))
	return t.Add(d)
}

// What Now knew when it last asked for the clocks, from before it asked.
var (
	start     = time.Now()
	askedAt   atomic.Int64 // the monotonic time since start
	askedSkew atomic.Int64 // the wall clock's time less the monotonic time
)

const (
	askEvery = int64(10 * time.Millisecond)
	maxSkew  = time.Millisecond
)

// Wall returns the time that time.Now will return at the instant i, if the machine is not
// suspended again before that.
func Wall(i time.Time) time.Time { return i.Add(-Suspended()) }

// AddSuspended adds d to the time that the machine has spent suspended. It is for tests.
func AddSuspended(d time.Duration) { suspendedMax.Add(int64(d)) }
