package run

import (
	"fmt"
	"time"
)

// Lease is what a run needs to know of its lock; a *zklock.Lock is one.
type Lease interface {
	Until() time.Time // the end of the lease that is proven so far; zero once the lock is not held
	Valid() bool
	Done() <-chan struct{}
}

// Timing says when the lease demands something of the command.
type Timing struct {
	Grace  time.Duration // between TERM and KILL
	Margin time.Duration // between KILL and the end of the lease
}

// MaxDefaultGrace limits the default grace of a command.
const MaxDefaultGrace = 5 * time.Second

// NewTiming returns the timing for a granted session timeout. least is how much of the lease
// is left at least while heartbeats are answered. grace is what the user wants; negative: the
// default, a quarter of the timeout.
//
// A grace that is too long for the lease would send TERM between two heartbeats that are both
// answered. So it is capped, and note says so if the user asked for more. A grace of more than
// half of the timeout is an error.
func NewTiming(timeout, least, grace time.Duration) (t Timing, note string, err error) {
	wanted := grace
	if grace < 0 {
		grace = min(timeout/4, MaxDefaultGrace)
	}
	if err := CheckGrace(timeout, wanted); err != nil {
		return Timing{}, "", err
	}
	t = Timing{Grace: grace, Margin: max(timeout/50, 100*time.Millisecond)}
	if most := max(least-t.Margin-t.slack(timeout), 0); t.Grace > most {
		t.Grace = most
		if wanted >= 0 {
			note = fmt.Sprintf("a grace of %v is too long for a session timeout of %v: the command gets %v; raise session_timeout for more", wanted, timeout, most.Truncate(time.Millisecond))
		}
	}
	return t, note, nil
}

// CheckGrace returns an error for a grace that is more than half of a session timeout, the
// one asked for or the one granted.
func CheckGrace(timeout, grace time.Duration) error {
	if grace > timeout/2 {
		return fmt.Errorf("a grace of %v is more than half of the session timeout of %v: shorten it, or raise session_timeout", grace, timeout)
	}
	return nil
}

// slack is how late the answer to a heartbeat may come without a TERM, at least.
func (t Timing) slack(timeout time.Duration) time.Duration { return timeout / 15 }

// Ready reports whether so much of the lease is left that a command can start: it should not
// get a TERM before the next heartbeat.
func (t Timing) Ready(left time.Duration) bool { return left > t.Grace+t.Margin }

// demand is what the lease demands at a moment.
type demand int

const (
	nothing   demand = iota
	terminate        // TERM now, KILL at the end of the lease less the margin
	kill             // KILL now
)

// demands returns the demand of a lease with that much time left, and how long at least it
// stays the same.
func (t Timing) demands(left time.Duration) (demand, time.Duration) {
	switch {
	case left <= t.Margin:
		return kill, 0
	case left <= t.Margin+t.Grace:
		return terminate, left - t.Margin
	}
	return nothing, left - t.Margin - t.Grace
}
