package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Stats has the figures of a [Client]: its sessions and locks at a moment, and totals
// since it was opened.
type Stats struct {
	// Problem is why the client acquires no lock at this moment, as an error of [Client.Healthy] has it; "" if it can, or
	// has no session since none was wanted.
	Problem string

	MaxSessions int // the setting pool_max_sessions
	Open        int // how many sessions the client has now, including those that are being replaced
	Connected   int // how many of them have a connection
	Suspended   int // how many of them have no connection

	// Draining is how many of them are being replaced: they take no new locks, and the
	// client closes them when no lock and no kept queue node is left on them.
	Draining int

	// Held is how many locks are held now. Readers that share a queue node, joins with
	// Reenter, and the names of an All count once.
	Held int

	// Leading is how many of Held are held by acquisitions with [WithCandidacy], such as the leaders
	// of elections.
	Leading int

	// Kept is how many queue nodes the client keeps between two uses of a name, because of
	// the URL's key keep. No caller holds a lock of them.
	Kept int

	// Waiting is how many acquisitions wait now for other contenders, including those of
	// this process. Package tracing exports it as the metric zklock.waiting.
	Waiting int

	// Candidates is how many of Waiting are acquisitions with [WithCandidacy], such as the
	// candidates of elections that do not lead.
	Candidates int

	// Backlog is how many writes wait until they are sent: creates and deletes of queue nodes. A name is created
	// by one write of a transaction at most, so many acquisitions of one name with queue nodes of their own wait
	// for each other here. A write whose caller gives up leaves the backlog.
	Backlog int

	// Acquiring is how many acquisitions are under way now: those that wait for other
	// contenders, and those that wait for the ensemble or have just begun.
	Acquiring int

	Acquired     uint64        // how many acquisitions succeeded
	Failed       uint64        // how many acquisitions failed
	Contended    uint64        // how many acquisitions without WithCandidacy had to wait for another contender
	WaitDuration time.Duration // how long these waited, in total
	Lost         uint64        // how many Locks were lost; each is counted before its Done is closed

	// Forgotten counts Locks that the program dropped without a Release, and that the
	// garbage collector has found. They stay held until their session ends.
	Forgotten uint64

	// LongestHold is how long the oldest lock that is held now has been held, and LongestWait how long
	// the oldest acquisition that waits now for other contenders has waited. Both leave out
	// acquisitions with [WithCandidacy], which are meant to last.
	LongestHold, LongestWait time.Duration

	// Handovers counts how often a lock was passed on inside the process, without a
	// request. Acquisitions that were granted a kept queue node count, too.
	Handovers uint64

	// Deadlocks counts acquisitions that were ended because their waits were in a circle of waits: see
	// [DeadlockError].
	Deadlocks uint64

	// DeadlocksUnknown counts the waits of which a client does not know whether they are in a circle, since a
	// bound was reached: see docs/guarantees.md. It counts each wait once.
	DeadlocksUnknown uint64

	// TokensRegressed is true for good once the client has found that the ensemble has lost
	// transactions. Acquisitions fail with [ErrBadEnsemble] then, for the reason token_regression.
	TokensRegressed bool

	// LogDropped counts lines that the log does not have, because its handler took none for too long: see
	// [WithLogger].
	LogDropped uint64

	SessionsOpened uint64 // how many sessions were opened
	SessionsLost   uint64 // how many sessions have expired, or were given up by the client
	SessionsReaped uint64 // how many sessions of others, dead or given up, the client has ended: see the key session_dir
	Reconnects     uint64 // how many connections of a session were not its first

	Departures uint64    // how often a session has left a server that had fallen silent, and went on without a loss
	Departure  Departure // the newest of them
}

// Departure says that a session has left a server that had fallen silent, or a connection that the network had
// forgotten. No lock was lost by it.
type Departure struct {
	At       time.Time // when the session was connected again; the zero time if there was no departure
	From, To string    // the addresses of the servers

	Silent    time.Duration // for how long From had not answered
	Forgotten bool          // From answers on other connections: the network, or a proxy, has forgotten this one
}

// String returns what the log says of it, such as "left zk2:2181, silent for 1.3s; no lock was lost"; "" if there was none.
func (d Departure) String() string { return session.Departure(d).String() }

// Waiting returns how many acquisitions wait now for other contenders, by name; those of several names
// count for each. [Client.Contenders] does not show most of them: they have no queue node. Those with
// [WithCandidacy] have one, and are left out.
func (c *Client) Waiting() map[string]int {
	if c == nil || c.pool == nil {
		return make(map[string]int)
	}
	return c.local.Waiting()
}

// Stats returns the client's figures. They are read one after another, so they may differ
// by what happens in between.
func (c *Client) Stats() Stats {
	if c == nil || c.pool == nil {
		return Stats{}
	}
	st := Stats{
		MaxSessions:  c.cfg.Place.PoolMaxSessions,
		Acquired:     c.counters.acquired.Load(),
		Failed:       c.counters.failed.Load(),
		Contended:    c.counters.contended.Load(),
		WaitDuration: time.Duration(c.counters.waited.Load()),
		Lost:         c.counters.lost.Load(),
		Handovers:    c.counters.handovers.Load(),
		Forgotten:    c.counters.forgotten.Load(),
		Deadlocks:    c.counters.deadlocks.Load(),

		DeadlocksUnknown: c.deadlocks.Unknown.Load(),
		LogDropped:       c.cfg.Place.Lines.Dropped(),
		SessionsOpened:   c.pool.Opened.Load(),
		SessionsLost:     c.pool.Lost.Load(),
		SessionsReaped:   c.counters.reaped.Load(),
		Reconnects:       c.pool.Reconnects.Load(),
		Draining:         c.pool.Draining(),
		Departures:       c.pool.Departures.Load(),
		Departure:        Departure(c.pool.Departure()),

		TokensRegressed: c.pool.Regressed() != nil,
	}
	if err := c.pool.Problem(); err != nil {
		st.Problem = err.Error()
	}
	for _, s := range c.pool.All() {
		st.Open++
		st.Backlog += s.Session.Backlog()
		held, leading, longest := s.Session.Held()
		st.Held, st.Leading, st.LongestHold = st.Held+held, st.Leading+leading, max(st.LongestHold, longest)
		switch state, _ := s.Session.State(); state {
		case driver.Connected:
			st.Connected++
		case driver.Suspended:
			st.Suspended++
		}
	}
	n := c.local.Tally()
	st.Kept, st.Acquiring, st.Waiting, st.Candidates, st.LongestWait = n.Kept, n.Underway, n.Waiting, n.Candidates, n.LongestWait
	return st
}
