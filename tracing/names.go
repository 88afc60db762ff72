package tracing

import "go.opentelemetry.io/otel/attribute"

// ScopeName is the instrumentation scope of everything this package emits.
const ScopeName = "github.com/zklock/go-zklock/tracing"

// The names of spans.
const (
	// SpanAcquire is the span of one acquisition, including the wait.
	SpanAcquire = "zklock.acquire"

	// SpanWait is the part of an acquisition that waited for other holders.
	SpanWait = "zklock.wait"

	// SpanRelease is the span of one release.
	SpanRelease = "zklock.release"

	// SpanHold is the time a lock was held; see WithHoldSpan.
	SpanHold = "zklock.hold"
)

// The names of events on spans.
const (
	// EventAhead is on the wait span: the contender ahead has changed.
	EventAhead = "zklock.ahead"

	// EventHandover is on the wait span: the acquisition got the place in the queue from
	// another request of the process. The newest link leads to that request.
	EventHandover = "zklock.handover"

	// EventDeadlock is on the wait span: the wait was ended because of a deadlock. The newest links
	// lead to the other acquisitions that waited in it.
	EventDeadlock = "zklock.deadlock"

	// EventLost is on the span of the request that held a lock, and on the hold
	// span: the lock was lost.
	EventLost = "zklock.lost"
)

// The names of metrics made by Hooks.
const (
	// MetricAcquireDuration is a histogram of how long acquisitions took, in seconds.
	MetricAcquireDuration = "zklock.acquire.duration"

	// MetricWaitDuration is a histogram of how long acquisitions waited for other
	// holders, in seconds. Acquisitions that did not wait are not in it, and candidacies, which
	// wait on purpose, are not either: see zklock.WithCandidacy.
	MetricWaitDuration = "zklock.wait.duration"

	// MetricHoldDuration is a histogram of how long locks were held, in seconds.
	MetricHoldDuration = "zklock.hold.duration"

	// MetricStopDuration is a histogram of how long work went on after it was asked to stop, in
	// seconds: from the loss or the revocation of its lock to the release.
	MetricStopDuration = "zklock.stop.duration"

	// MetricHeld is the number of locks that are held.
	MetricHeld = "zklock.held"

	// MetricWaiting is the number of acquisitions that wait for other holders. It is the
	// same number as Waiting in zklock.Stats.
	MetricWaiting = "zklock.waiting"

	// MetricLost counts locks that were lost.
	MetricLost = "zklock.lost"

	// MetricDeadlocks counts acquisitions that were ended because of a deadlock: see
	// zklock.DeadlockError.
	MetricDeadlocks = "zklock.deadlocks"

	// MetricHandovers counts hand-overs: places that were passed on inside the process.
	MetricHandovers = "zklock.handovers"

	// MetricOperationDuration is a histogram of how long requests to the ensemble took,
	// in seconds.
	MetricOperationDuration = "zklock.operation.duration"

	// MetricOperationGroupSize is a histogram of how many callers' writes were sent in
	// one transaction.
	MetricOperationGroupSize = "zklock.operation.group_size"

	// MetricSessionLost counts sessions that expired or that the client gave up.
	MetricSessionLost = "zklock.session.lost"

	// MetricSessionReconnects counts how often a suspended session was connected again.
	MetricSessionReconnects = "zklock.session.reconnects"

	// MetricSessionSilent counts how often a session was suspended because its server did not answer.
	MetricSessionSilent = "zklock.session.silent"

	// MetricLeaseRemaining is a histogram of how much of a session's lease was left at
	// each heartbeat, in seconds. A session that holds no lock, and is not the first in
	// line for one, sends no heartbeats.
	MetricLeaseRemaining = "zklock.lease.remaining"
)

// The names of metrics made by RegisterStats.
const (
	// MetricSessions is the number of sessions, by state.
	MetricSessions = "zklock.sessions"

	// MetricSessionDraining is the number of sessions that end with their last lock.
	MetricSessionDraining = "zklock.session.draining"

	// MetricSessionMax is the number of sessions that the pool may have.
	MetricSessionMax = "zklock.session.max"

	// MetricSessionOpened counts the sessions that were opened.
	MetricSessionOpened = "zklock.session.opened"

	// MetricSessionReaped counts the sessions of dead processes that the client has ended; see the
	// URL's key session_dir.
	MetricSessionReaped = "zklock.session.reaped"

	// MetricHoldLongest is how long the oldest lock that is held now has been held, in
	// seconds; 0 if none is. It shows a holder that hangs, long before its hold is over
	// and in zklock.hold.duration. It leaves out leaders of elections, which hold for long on
	// purpose: see zklock.WithCandidacy.
	MetricHoldLongest = "zklock.hold.longest"

	// MetricWaitLongest is how long the oldest acquisition that waits now for other holders
	// has waited, in seconds; 0 if none does. It leaves out candidates of elections.
	MetricWaitLongest = "zklock.wait.longest"

	// MetricForgotten counts locks that the program dropped without a Release. They stay
	// held until their session ends.
	MetricForgotten = "zklock.forgotten"

	// MetricBacklog is how many writes wait until they are sent: Stats.Backlog.
	MetricBacklog = "zklock.backlog"

	// MetricTokensRegressed is how many Clients acquire no more locks, because the ensemble has
	// lost transactions: see zklock.Reason.
	MetricTokensRegressed = "zklock.tokens.regressed"
)

// The keys of attributes.
const (
	// AttrMode is the mode of the acquisition: exclusive, shared or permit.
	AttrMode = attribute.Key("zklock.mode")

	// AttrOutcome is one of the Outcome constants.
	AttrOutcome = attribute.Key("zklock.outcome")

	// AttrErrorType is the kind of an error; see the package documentation.
	AttrErrorType = attribute.Key("error.type")

	// AttrName is the lock's name, as WithName or WithNameAttribute maps it.
	AttrName = attribute.Key("zklock.name")

	// AttrTry is true if the caller does not wait for other holders.
	AttrTry = attribute.Key("zklock.try")

	// AttrCandidacy is true for acquisitions with zklock.WithCandidacy, such as an election's, and
	// for their locks: they wait and hold for long on purpose. Others do not have it.
	AttrCandidacy = attribute.Key("zklock.candidacy")

	// AttrToken is the fencing token.
	AttrToken = attribute.Key("zklock.token")

	// AttrPosition is how many contenders were ahead in the queue.
	AttrPosition = attribute.Key("zklock.queue.position")

	// AttrDeadlockWaits is how many waits were in a deadlock.
	AttrDeadlockWaits = attribute.Key("zklock.deadlock.waits")

	// AttrAheadNode is the queue node of the contender ahead.
	AttrAheadNode = attribute.Key("zklock.ahead.node")

	// AttrAheadHost is the host of the contender ahead.
	AttrAheadHost = attribute.Key("zklock.ahead.host")

	// AttrAheadPID is the id of the process of the contender ahead.
	AttrAheadPID = attribute.Key("zklock.ahead.pid")

	// AttrHanded is true if a release passed the place in the queue on inside the
	// process, or if another handle still shares the place.
	AttrHanded = attribute.Key("zklock.release.handed")

	// AttrReleaseReason is why a lock stopped being held: released or lost.
	AttrReleaseReason = attribute.Key("zklock.release.reason")

	// AttrOperation is the purpose of a request to the ensemble.
	AttrOperation = attribute.Key("zklock.operation.kind")

	// AttrSessionState is a session's state: connected, suspended or ended.
	AttrSessionState = attribute.Key("zklock.session.state")

	// AttrClient numbers the calls of RegisterStats in this process, from 1 on. It keeps
	// values of different Clients apart that must not be added.
	AttrClient = attribute.Key("zklock.client")

	// AttrSessionID is the id of the session of the last request, in hexadecimal.
	AttrSessionID = attribute.Key("zklock.session.id")

	// AttrServerAddress is the host of the server of the last request.
	AttrServerAddress = attribute.Key("server.address")

	// AttrServerPort is the port of that server.
	AttrServerPort = attribute.Key("server.port")
)

// The values of AttrOutcome.
const (
	// OutcomeAcquired means that the lock was acquired or, on a wait, that the wait ended
	// because no contender is ahead.
	OutcomeAcquired = "acquired"

	// OutcomeContended means that another holder has the lock, and a limit ended the
	// acquisition: a try, WithWait or a limit on waiters.
	OutcomeContended = "contended"

	// OutcomeTimeout means that the context's deadline passed during the wait for another
	// holder.
	OutcomeTimeout = "timeout"

	// OutcomeCanceled means that the caller's context was cancelled.
	OutcomeCanceled = "canceled"

	// OutcomeLost means that the lock was lost.
	OutcomeLost = "lost"

	// OutcomeError means any other error. The attribute error.type has its kind.
	OutcomeError = "error"
)

// The values of AttrReleaseReason.
const (
	// reasonReleased means that the lock was released while it was held.
	reasonReleased = "released"

	// reasonLost means that the lock was lost.
	reasonLost = "lost"
)

// reasonRevoked is the value of AttrErrorType for a lock whose holder was asked for it.
const reasonRevoked = "revoked"

// The values of AttrSessionState.
const (
	// stateConnected means that the session has a connection.
	stateConnected = "connected"

	// stateSuspended means that the session has no connection at the moment.
	stateSuspended = "suspended"

	// stateEnded means that the session has ended, and the pool has not removed it yet.
	stateEnded = "ended"
)
