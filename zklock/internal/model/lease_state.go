package model

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Leases is the model of the lease: one client holds a lock on a session, and the leader of
// the servers expires the session. Then the next contender is granted the lock at once. It has
// clocks, so time is part of its states: instants are whole units, relative to now.
//
// The client is connected to a follower. Between the follower and the leader there are two
// streams. Messages in a stream stay in order and are late by any time. The leader sends pings
// down its stream, at least one a tick; the follower answers each with a report of the sessions
// that it has heard of since the one before. Only such a report, and a handshake, let the
// leader give the session another timeout. Requests and replies share the streams with them. A
// new leader may be elected, which gives the session a full timeout; the client's follower may
// stay with the old leader, which goes on answering, but commits nothing.
//
// Between client and follower messages take no time. That leaves nothing out: a request that
// was sent later and arrives at once proves at least as much, and so does a reply that is read
// at once.
type Leases struct {
	Unit    time.Duration // the length of a unit of time
	Timeout int8          // the session timeout, in units
	Tick    int8          // the servers' tickTime, in units

	Outstanding int8 // how many requests the client may have under way
	Elections   int8 // how many there may be
	Reconnects  int8 // how often the client may reconnect
	Slips       int8 // for how many units the client's clock stands still

	Without LeaseGuard // the guard that is taken out
}

// LeaseGuard is a part of the lease's rule that can be taken out of the model.
type LeaseGuard uint8

// The guards of the lease.
const (
	NoLeaseGuard      LeaseGuard = iota // none is taken out
	TickBetween                         // the tick between the exchange j and the exchange p
	CommitsOnly                         // only a write that a quorum has committed extends the lease
	EarlierExchanges                    // the write itself proves nothing about its own touch
	ExchangeBefore                      // nor does it prove anything about the touch of the one before
	SentNotAnswered                     // the lease counts from when a request was sent
	ReconnectsProveNo                   // a handshake that resumes a session proves nothing by itself
	Margin                              // the lease ends earlier than proven
)

// The kinds of messages between follower and leader.
const (
	nothing   int8 = iota
	ping           // from the leader
	report         // from the follower: it has heard of the session
	syncing        // a Sync, or its reply
	write          // a write, or its reply
	handshake      // a handshake that resumes the session, or its reply
)

const (
	streamLen = 8   // messages in a stream: the requests under way, a ping between any two, and room
	maxLinks  = 10  // exchanges in the chain: the handshake, and one a unit for a timeout of 8 units
	maxUnder  = 3   // requests under way
	unproven  = -99 // nothing is proven
)

// exchanged has the instants of an exchange, by the client's clock.
type exchanged struct {
	sent, answered int8
	later          bool // answered is a moment later: another request was sent at that instant before the reply was read
}

// leaseState is a state of Leases. All instants are in units from now, so they are 0 or less.
type leaseState struct {
	// The client.
	proven    int8 // the lease counts from that instant
	links     [maxLinks]exchanged
	chain     int8            // how many links there are, the handshake first; 0: no handshake was answered on this connection
	sent      [maxUnder]int8  // of the requests under way, in their order
	under     int8            // how many
	slips     int8            // how often its clock has stood still
	connected int8            // how often it has reconnected
	silent    bool            // this connection never answers again
	toLeader  [streamLen]int8 // the follower's stream to the leader
	toClient  [streamLen]int8 // the leader's stream to the follower
	heard     bool            // the follower has heard of the session since its last report

	// The servers.
	deposed bool // the client's follower follows a leader that was deposed
	elected int8 // how many elections there were
	pinged  int8 // units since the leader's last ping
	left    int8 // units until the leader may expire the session
	expired bool // it has, and the next contender holds the lock
}

// Initial implements System: the session was just created, at any distance from a ping.
func (m Leases) Initial() (all []leaseState) {
	for pinged := range m.Tick + 1 {
		s := leaseState{chain: 1, pinged: pinged, left: m.Timeout}
		all = append(all, s)
	}
	return all
}

// epoch is the instant of the client's clock that is now.
var epoch = time.Unix(1_000_000, 0)

// instant returns an instant of the client's clock.
func (m Leases) instant(units int8) time.Time { return epoch.Add(time.Duration(units) * m.Unit) }

// answeredAt returns the instant when a reply was read.
func (m Leases) answeredAt(e exchanged) time.Time {
	at := m.instant(e.answered)
	if e.later {
		return at.Add(1)
	}
	return at
}

// lease returns the library's lease in a state.
func (m Leases) lease(s *leaseState) *lease.Lease {
	l := &lease.Lease{Timeout: time.Duration(m.Timeout) * m.Unit, Tick: time.Duration(m.Tick) * m.Unit}
	switch m.Without {
	case TickBetween:
		l.Tick = 0
	case Margin:
		for range 20 { // the margin of a longer timeout is longer, too
			l.Timeout = time.Duration(m.Timeout)*m.Unit + marginOf(l.Timeout)
		}
	}
	if s.proven != unproven {
		l.Until = m.instant(s.proven).Add(m.length(l))
	}
	for i, e := range s.links[:s.chain] {
		if i == 0 {
			l.Connected(m.instant(e.sent), m.answeredAt(e), false)
		} else {
			l.Acknowledged(m.instant(e.sent), m.answeredAt(e), false)
		}
	}
	return l
}

// length returns how long a lease is that is proven by a touch, counted from that touch.
func (m Leases) length(l *lease.Lease) time.Duration {
	fresh := lease.Lease{Timeout: l.Timeout, Tick: l.Tick}
	fresh.Connected(epoch, epoch, true)
	return fresh.Until.Sub(epoch)
}

// marginOf returns the margin of a lease with a timeout.
func marginOf(timeout time.Duration) time.Duration {
	fresh := lease.Lease{Timeout: timeout}
	fresh.Connected(epoch, epoch, true)
	return timeout - fresh.Until.Sub(epoch)
}

// alive reports whether the lease has not run out.
func (m Leases) alive(s *leaseState) bool { return m.lease(s).Until.After(epoch) }

// note stores the end of a lease in a state.
func (m Leases) note(s *leaseState, l *lease.Lease) {
	if !l.Until.IsZero() {
		s.proven = int8(l.Until.Add(-m.length(l)).Sub(epoch) / m.Unit)
	}
}

// Check implements System.
func (m Leases) Check(s leaseState) error {
	if s.expired && m.alive(&s) {
		return fmt.Errorf("the next contender holds the lock, and the lease of the first holder has not run out")
	}
	return nil
}
