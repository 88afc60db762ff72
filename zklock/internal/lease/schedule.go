package lease

import "time"

// ExchangeEvery returns the interval of the exchanges of a session with places. Every one of
// them is a Sync, and some are followed by a heartbeat, a write: see CommitDue. A Sync goes
// to the leader and back, and no server writes it to disk. With long timeouts Syncs are more frequent
// than heartbeats need: only an exchange shows that a server has fallen silent, and callers wait until it is left.
func (l *Lease) ExchangeEvery() time.Duration {
	return max(min(l.Timeout/10, max(time.Second, l.Timeout/30)), MinPeriod)
}

// Early is the part of its period by which an exchange may be early: a tenth.
const Early = 10

// Soonest returns the earliest instant at which a session with places that need the lease may have to send something: it is never later
// than what the session's heart plans. As a rule it is almost an interval away, since any write was an exchange. counting says that
// the lease counts.
func (l *Lease) Soonest(counting bool) time.Time {
	every := l.ExchangeEvery()
	soonest := l.LastSent().Add(every - every/Early)
	if due := l.CommitDue().Add(-2 * every / Early); counting && due.Before(soonest) {
		return due
	}
	return soonest
}

// RestEvery returns the interval of the Syncs of a session whose places all rest. Its callers wait longer for their
// turn if its server falls silent.
func (l *Lease) RestEvery() time.Duration { return min(l.SyncEvery(), 5*l.ExchangeEvery()/2) }

// heartbeatEvery returns the interval of heartbeats.
func (l *Lease) heartbeatEvery() time.Duration { return 2 * max(l.Timeout/10, MinPeriod) }

// CommitDue returns the instant when the next heartbeat is due.
//
// A heartbeat at the instant t follows right after a Sync, which is its p. Its j was sent at most
// a tick and an interval of the Syncs before p. So it proves a lease until at least t + Timeout -
// margin - Tick - ExchangeEvery. The next heartbeat is due when what is left is heartbeatEvery less
// than that, plus a hundredth of the timeout for the time that the requests take. Without the
// Syncs, the lease would get as short with twice as many heartbeats.
//
// Any other write that was committed moves the instant as far as it moves the lease.
func (l *Lease) CommitDue() time.Time {
	// With short timeouts the interval is a large part of them: there each exchange has a
	// heartbeat.
	return l.Until.Add(-max(l.LeastKept()+l.Timeout/100, l.Timeout/3))
}

// LeastKept returns how much of the lease is left at least while exchanges are answered at once.
// CommitDue explains what a heartbeat proves; the next one is sent within heartbeatEvery before
// that gets too short. A lock may be granted with less, as Least says, until the first heartbeat.
func (l *Lease) LeastKept() time.Duration {
	return max(l.Timeout-l.margin()-l.Tick-l.ExchangeEvery()-l.heartbeatEvery(), 0)
}

// Short returns how much the lease is too short for locks to work; 0 or less if they work. While
// heartbeats are answered, there must always be enough for a grant, and 60 ms for a request
// before it: a message there and back, across a continent.
func (l *Lease) Short() time.Duration { return l.Least() + 60*time.Millisecond - l.LeastKept() }

// SyncEvery returns the interval of an idle session's Syncs. Its first write has to find exchanges
// that prove a usable lease. At that write, p is at most one interval old, and j at most two
// intervals and a tick. After the margin, a quarter of the timeout must be left. And a lock that is granted now must
// outlast an outage as one that is held for long does: with long timeouts j is then no older than in a heartbeat.
func (l *Lease) SyncEvery() time.Duration {
	asHeld := (l.Tick + l.ExchangeEvery() + l.heartbeatEvery()) / 2
	return max(min(l.Timeout/3, (l.Timeout*65/100-l.Tick)/2, asHeld), MinPeriod)
}

// MinPeriod is the shortest interval of exchanges. It limits the load that
// sessions with short timeouts put on the ensemble.
const MinPeriod = 200 * time.Millisecond
