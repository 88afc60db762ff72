// Package lease computes for how long a ZooKeeper session is proven to be alive, and has the clock
// that the computation uses.
package lease

import (
	"slices"
	"time"
)

// Lease is what a session can prove about its own life. A connection proves nothing: a
// server that has lost its leader goes on answering pings and reads for syncLimit
// ticks, while the leader expires the session and grants its locks to others. Only what
// a quorum has committed counts.
//
// An exchange is a write or a Sync and its reply on one connection; a read proves nothing, since the server answers
// it from its own state. sent is an instant that was
// read before the request was written; answered is one that was read after the reply.
// Let k be a committed write, p an exchange that was answered before k was sent, and j
// an exchange that was answered at least one tick before p was sent. Then the leader
// cannot expire the session before sent(j) + timeout:
//
//   - Only the leader expires sessions: a session timeout after it last heard of the
//     session. It hears of a follower's clients only through the follower's answers to
//     its pings. It sends two pings a tick, and at least one: docs/guarantees.md says
//     what that assumes, also of observers behind followers, whose reports take two pings.
//   - The reply to p came down the same ordered stream as the leader's pings. One of
//     these pings was sent in the tick before p, after j was answered. So the follower
//     had reported a touch of the session from sent(j) or later before it forwarded k.
//   - The leader read that report before it committed k. It committed k as the leader
//     of a quorum, so no other leader had started by then. A later leader gives every
//     session a full timeout from its own start.
//
// "The last exchange plus the timeout" and "the exchange before the last plus the
// timeout" are not sound: the report of the touch may still be under way, or may go to
// a deposed leader.
//
// A handshake that creates a session is itself committed, and proves sent + timeout at
// once. A handshake that reconnects to an existing session is not committed, since a
// deposed leader answers it too. It counts from the first write on the same connection
// that was sent after the handshake was answered, and was committed.
//
// The lease ends earlier than proven: by 1% of the timeout, because clocks run at
// different rates, and by another 5%, at least 50 ms, for everything that happens
// between reading the clock and using the result.
//
// A Lease is not safe for concurrent use: its session guards it.
type Lease struct {
	Timeout time.Duration // the negotiated timeout minus loss_delay; the smallest of the session's life
	Tick    time.Duration // at least the servers' tickTime

	// chain holds exchanges of the present connection, the oldest first. Each was sent after
	// the one before it was answered; the handshake is the first. Exchanges are left out to
	// keep it short, but never the newest: with fewer exchanges the chain never proves more.
	chain     []exchange
	handshake exchange

	Until time.Time // the end of the lease, an instant; zero while nothing is proven
}

// exchange has the instants of a request and its reply.
type exchange struct{ sent, answered time.Time }

// chainSteps limits the chain's length: its exchanges were sent at least
// Timeout/chainSteps apart.
const chainSteps = 40

// Connected starts a new chain with a handshake that succeeded. It is called first. sent and answered are its
// instants; created means that it created the session.
func (l *Lease) Connected(sent, answered time.Time, created bool) {
	l.handshake = exchange{sent, answered}
	l.chain = append(l.chain[:0], l.handshake)
	if created {
		l.prove(sent)
	}
}

// Acknowledged records an exchange that began and ended on the connection of the present
// chain. committed means that it was a write, which a quorum has committed.
func (l *Lease) Acknowledged(sent, answered time.Time, committed bool) {
	if committed {
		if !sent.Before(l.handshake.answered) {
			l.prove(l.handshake.sent)
		}
		if p, ok := l.latestAnswered(sent); ok {
			if j, ok := l.latestAnswered(p.sent.Add(-l.Tick)); ok {
				l.prove(j.sent)
			}
		}
	}
	last := l.chain[len(l.chain)-1]
	if sent.Before(last.answered) || sent.Sub(last.sent) < l.Timeout/chainSteps {
		return
	}
	// An exchange older than the timeout cannot prove anything about the future.
	l.chain = slices.DeleteFunc(l.chain, func(e exchange) bool { return answered.Sub(e.sent) > l.Timeout })
	l.chain = append(l.chain, exchange{sent, answered})
}

// latestAnswered returns the latest exchange answered at or before i.
func (l *Lease) latestAnswered(i time.Time) (exchange, bool) {
	for n := len(l.chain) - 1; n >= 0; n-- {
		if !l.chain[n].answered.After(i) {
			return l.chain[n], true
		}
	}
	return exchange{}, false
}

// LastSent returns the instant when the newest exchange of the chain was sent. The next one is
// due an interval after it.
func (l *Lease) LastSent() time.Time { return l.chain[len(l.chain)-1].sent }

// prove moves the end of the lease to what a touch of the session at sent proves, if
// that is later.
func (l *Lease) prove(sent time.Time) {
	if until := sent.Add(l.Timeout - l.margin()); until.After(l.Until) {
		l.Until = until
	}
}

// margin returns by how much a lease ends earlier than is proven.
func (l *Lease) margin() time.Duration {
	return l.Timeout/100 + max(l.Timeout/20, 50*time.Millisecond)
}

// Lasts reports whether what is proven may begin to count at the instant now: enough is left
// for a grant, and a heartbeat can extend it before it ends. A heartbeat extends it if its j
// is a later exchange than that which proves Until. After a gap in the chain, there is none
// that was answered a tick before: the lease could run out although every heartbeat is
// answered.
func (l *Lease) Lasts(now time.Time) bool {
	if l.Until.Sub(now) < l.Least() {
		return false
	}
	next := now // the next exchange is the j of a later heartbeat at the latest
	for _, e := range l.chain {
		if e.sent.Add(l.Timeout - l.margin()).After(l.Until) {
			next = e.answered
			break
		}
	}
	return !l.Until.Before(next.Add(l.Tick + l.ExchangeEvery()))
}

// Least returns how much of the lease must be left for a lock to be granted.
func (l *Lease) Least() time.Duration { return l.Timeout / 4 }
