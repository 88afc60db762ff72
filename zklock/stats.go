package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Stats is a snapshot of what a Client does and has done.
type Stats struct {
	// MaxSessions is the pool's limit.
	MaxSessions int

	// Open is how many sessions there are now, those being replaced included.
	Open int

	// Connected is how many of them have a connection.
	Connected int

	// Suspended is how many of them have none at the moment.
	Suspended int

	// Draining is how many of them take no new locks and are closed when their
	// last one is released.
	Draining int

	// Held is how many locks are held now.
	Held int

	// Waiting is how many acquisitions wait now for other holders, those of this
	// process included. It is what the metric zklock.waiting of package tracing
	// counts.
	Waiting int

	// Acquiring is how many acquisitions are under way now: those that wait for
	// other holders, and those that wait for the ensemble or have begun just now.
	Acquiring int

	// Acquired counts acquisitions that succeeded.
	Acquired uint64

	// Failed counts acquisitions that did not.
	Failed uint64

	// Contended counts acquisitions that had to wait for another holder.
	Contended uint64

	// WaitDuration is how long they waited, in all.
	WaitDuration time.Duration

	// Lost counts handles that were lost, each before its Done closes.
	Lost uint64

	// Forgotten counts handles that were dropped without a Release, as far as the
	// garbage collector has found them; they stay held.
	Forgotten uint64

	// LongestHold is for how long the oldest lock that is held now has been.
	LongestHold time.Duration

	// LongestWait is for how long the oldest acquisition that waits now for other
	// holders has done so.
	LongestWait time.Duration

	// Handovers counts locks passed on inside the process, without a request.
	Handovers uint64

	// SessionsOpened counts sessions opened.
	SessionsOpened uint64

	// SessionsLost counts sessions that expired or were given up.
	SessionsLost uint64

	// Reconnects counts connections made after the first of a session.
	Reconnects uint64
}

// Stats returns a snapshot. Its fields are read one after another, so they may
// disagree by what happened in between.
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
