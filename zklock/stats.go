package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Stats has the figures of a [Client]: its sessions and locks at a moment, and totals
// since it was opened.
type Stats struct {
	// MaxSessions is the setting pool_max_sessions.
	MaxSessions int

	// Open is how many sessions the client has now, including those that are being
	// replaced.
	Open int

	// Connected is how many of them have a connection.
	Connected int

	// Suspended is how many of them have no connection.
	Suspended int

	// Draining is how many of them are being replaced: they take no new locks, and the
	// client closes them when their last lock is released.
	Draining int

	// Held is how many locks are held now. Readers that share a queue node, joins with
	// Reenter, and the names of an All count once.
	Held int

	// Kept is how many queue nodes the client keeps between two uses of a name, because of
	// the URL's key keep. They are not held.
	Kept int

	// Waiting is how many acquisitions wait now for other contenders, including those of
	// this process. Package tracing exports it as the metric zklock.waiting.
	Waiting int

	// Acquiring is how many acquisitions are under way now: those that wait for other
	// contenders, and those that wait for the ensemble or have just begun.
	Acquiring int

	// Acquired counts acquisitions that succeeded.
	Acquired uint64

	// Failed counts acquisitions that failed.
	Failed uint64

	// Contended counts acquisitions that had to wait for another contender.
	Contended uint64

	// WaitDuration is how long these waited, in total.
	WaitDuration time.Duration

	// Lost counts Locks that were lost. Each is counted before its Done is closed.
	Lost uint64

	// Forgotten counts Locks that the program dropped without a Release, and that the
	// garbage collector has found. They stay held until their session ends.
	Forgotten uint64

	// LongestHold is how long the oldest lock that is held now has been held.
	LongestHold time.Duration

	// LongestWait is how long the oldest acquisition that waits now for other contenders
	// has waited.
	LongestWait time.Duration

	// Handovers counts how often a lock was passed on inside the process, without a
	// request. Acquisitions that were granted a kept queue node count, too.
	Handovers uint64

	// SessionsOpened counts sessions that were opened.
	SessionsOpened uint64

	// SessionsLost counts sessions that have expired or that the client has given up.
	SessionsLost uint64

	// Reconnects counts connections of a session after its first.
	Reconnects uint64
}

// Stats returns the client's figures. They are read one after another, so they may differ
// by what happens in between.
func (c *Client) Stats() Stats {
	if c == nil || c.pool == nil {
		return Stats{}
	}
	st := Stats{
		MaxSessions:    c.cfg.PoolMaxSessions,
		Acquired:       c.counters.acquired.Load(),
		Failed:         c.counters.failed.Load(),
		Contended:      c.counters.contended.Load(),
		WaitDuration:   time.Duration(c.counters.waited.Load()),
		Lost:           c.counters.lost.Load(),
		Handovers:      c.counters.handovers.Load(),
		Forgotten:      c.counters.forgotten.Load(),
		SessionsOpened: c.pool.Opened.Load(),
		SessionsLost:   c.pool.Lost.Load(),
		Reconnects:     c.pool.Reconnects.Load(),
		Draining:       c.pool.Draining(),
	}
	for _, s := range c.pool.All() {
		st.Open++
		st.LongestHold = max(st.LongestHold, s.Longest())
		switch state, _ := s.DS.State(); state {
		case driver.Connected:
			st.Connected++
		case driver.Suspended:
			st.Suspended++
		}
	}
	c.turnstiles.count(&st)
	return st
}

// count sets the figures of Stats about what is held and waited for.
func (ts *turnstiles) count(st *Stats) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	st.Held = ts.held
	st.Kept = ts.kept.len()
	st.Acquiring = len(ts.underway)
	for r := range ts.underway {
		if r.blocked {
			st.Waiting++
			st.LongestWait = max(st.LongestWait, time.Since(r.waitFrom))
		}
	}
}
