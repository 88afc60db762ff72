package lease

import "time"

// Lease is what a session can prove about its own life. A connection proves
// nothing: a server that lost its leader goes on answering pings and reads for
// syncLimit ticks while the leader expires the session and grants its locks to
// others. Only what a quorum committed counts.
//
// An exchange is a request and its reply on one connection: sent is an instant
// read before the request was written, answered one read after the reply. Let
// k be a committed write, p an exchange answered before k was sent, and j one
// answered at least tick before p was sent. Then the leader cannot expire the
// session before sent(j) + timeout:
//
//   - The leader alone expires sessions, timeout after it last heard of them,
//     and hears of a follower's clients only through the follower's answers to
//     its pings, of which there is at least one a tick.
//   - The reply to p came down the same ordered stream as the leader's pings.
//     One of these was sent in the tick before p, later than j's answer, so the
//     follower had reported a touch no older than sent(j) before it forwarded k.
//   - k was committed by the leader, which read that report first, as the
//     leader of a quorum: no other leader had started. A later leader gives
//     every session a full timeout from its own start.
//
// "The last exchange plus the timeout" and "the one before" are not sound: the
// touch of j may still be under way, or on its way to a deposed leader.
//
// A handshake that creates a session is itself committed, and proves
// sent + timeout at once. One that takes up a session again is not (a deposed
// leader answers it): it counts from the first write committed after it on the
// same connection.
//
// The lease ends earlier than proven, by 1% of the timeout for clocks that run
// at different rates and by 5%, at least 50 ms, for everything that happens
// between the look at the clock and its use.
//
// A lease is not safe for concurrent use; its session guards it.
type Lease struct {
	Timeout time.Duration // negotiated, less loss_delay; the smallest of the session's life
	Tick    time.Duration // at least the servers' tickTime

	// chain holds exchanges of the present connection, oldest first, each sent
	// after the one before was answered; the handshake is the first. It is
	// thinned and trimmed: leaving exchanges out never proves more.
	chain     []exchange
	handshake exchange

	Until time.Time // an instant; zero while nothing is proven
}

type exchange struct{ sent, answered time.Time }

// chainSteps is how many links a timeout is divided into at most.
const chainSteps = 40

// Connected starts a new chain: a handshake sent and answered at these instants
// succeeded. created says that it created the session.
func (l *Lease) Connected(sent, answered time.Time, created bool) {
	l.handshake = exchange{sent, answered}
	l.chain = append(l.chain[:0], l.handshake)
	if created {
		l.prove(sent)
	}
}

// Acknowledged records an exchange that began and ended on the connection of
// the present chain. committed says that it was a write.
func (l *Lease) Acknowledged(sent, answered time.Time, committed bool) {
	if len(l.chain) == 0 {
		return
	}
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
	l.chain = append(l.chain, exchange{sent, answered})
	// What is older than a timeout cannot prove anything that lies ahead.
	drop := 0
	for drop < len(l.chain)-1 && answered.Sub(l.chain[drop].sent) > l.Timeout {
		drop++
	}
	l.chain = append(l.chain[:0], l.chain[drop:]...)
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

// LastSent is when the newest link of the chain was sent: what heartbeats are
// timed by.
func (l *Lease) LastSent() time.Time {
	if len(l.chain) == 0 {
		return time.Time{}
	}
	return l.chain[len(l.chain)-1].sent
}

// prove raises the end of the lease to what a touch at sent proves.
func (l *Lease) prove(sent time.Time) {
	margin := l.Timeout/100 + max(l.Timeout/20, 50*time.Millisecond)
	if until := sent.Add(l.Timeout - margin); until.After(l.Until) {
		l.Until = until
	}
}

// HeartbeatEvery is how often a session that has something to lose asks a
// quorum: often enough that a lost heartbeat or two leave a lease worth having.
func (l *Lease) HeartbeatEvery() time.Duration {
	return max(l.Timeout/10, MinPeriod)
}

// SyncEvery is how often an idle session exchanges a Sync with the leader, so
// that its first write finds exchanges to prove a usable lease by: p is at most
// one period old, j at most two and a tick, and a quarter of the timeout has to
// be left after the margin.
func (l *Lease) SyncEvery() time.Duration {
	return max(min(l.Timeout/3, (l.Timeout*65/100-l.Tick)/2), MinPeriod)
}

// MinPeriod bounds what short timeouts cost the ensemble.
const MinPeriod = 200 * time.Millisecond

// Least is how much of the lease a lock must have left to be handed out.
func (l *Lease) Least() time.Duration { return l.Timeout / 4 }
