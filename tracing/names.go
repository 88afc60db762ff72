package tracing

import "go.opentelemetry.io/otel/attribute"

// ScopeName is the instrumentation scope of everything this package emits.
const ScopeName = "github.com/zklock/go-zklock/tracing"

// Version is the version of the instrumentation scope.
const Version = "0.1.0"

// The names of spans.
const (
	// SpanAcquire is the span of one acquisition, waiting included.
	SpanAcquire = "zklock.acquire"

	// SpanWait is the part of an acquisition in which others were waited for.
	SpanWait = "zklock.wait"

	// SpanRelease is the span of one release.
	SpanRelease = "zklock.release"

	// SpanHold is the time a lock was held; see WithHoldSpan.
	SpanHold = "zklock.hold"
)

// The names of events on spans.
const (
	// EventAhead is on the wait span: the contender waited for has changed.
	EventAhead = "zklock.ahead"

	// EventHandover is on the wait span: the place in the queue was passed on
	// inside the process, by the request that the newest link leads to.
	EventHandover = "zklock.handover"

	// EventLost is on the span of the request that held a lock, and on the hold
	// span: the lock was lost.
	EventLost = "zklock.lost"
)

// The names of metrics made by Hooks.
const (
	// MetricAcquireDuration is a histogram of how long acquisitions took.
	MetricAcquireDuration = "zklock.acquire.duration"

	// MetricWaitDuration is a histogram of how long those that had to wait for
	// others waited for them.
	MetricWaitDuration = "zklock.wait.duration"

	// MetricHoldDuration is a histogram of how long locks were held.
	MetricHoldDuration = "zklock.hold.duration"

	// MetricHeld is how many locks are held.
	MetricHeld = "zklock.held"

	// MetricWaiting is how many acquisitions wait for other holders, as
	// zklock.Stats has them under Waiting.
	MetricWaiting = "zklock.waiting"

	// MetricLost counts locks that were lost.
	MetricLost = "zklock.lost"

	// MetricHandovers counts locks passed on inside the process.
	MetricHandovers = "zklock.handovers"

	// MetricOperationDuration is a histogram of how long requests to the
	// ensemble took.
	MetricOperationDuration = "zklock.operation.duration"

	// MetricOperationGroupSize is a histogram of how many callers' writes went
	// into one transaction.
	MetricOperationGroupSize = "zklock.operation.group_size"

	// MetricSessionLost counts sessions that expired or were given up.
	MetricSessionLost = "zklock.session.lost"

	// MetricSessionReconnects counts sessions that were suspended and came back.
	MetricSessionReconnects = "zklock.session.reconnects"

	// MetricLeaseRemaining is a histogram of how much of a session's lease was
	// left at each heartbeat.
	MetricLeaseRemaining = "zklock.lease.remaining"
)

// The names of metrics made by RegisterStats.
const (
	// MetricSessionCount is how many sessions there are, by state.
	MetricSessionCount = "zklock.session.count"

	// MetricSessionDraining is how many of them end with their last lock.
	MetricSessionDraining = "zklock.session.draining"

	// MetricSessionMax is how many sessions the pool may have.
	MetricSessionMax = "zklock.session.max"

	// MetricSessionOpened counts sessions opened.
	MetricSessionOpened = "zklock.session.opened"
)

// The keys of attributes.
const (
	// AttrMode is how a lock is held: exclusive, shared or permit.
	AttrMode = attribute.Key("zklock.mode")

	// AttrOutcome is one of the Outcome constants.
	AttrOutcome = attribute.Key("zklock.outcome")

	// AttrErrorType is what kind of error it was; see the package documentation.
	AttrErrorType = attribute.Key("error.type")

	// AttrName is the lock's name, as the options have it.
	AttrName = attribute.Key("zklock.name")

	// AttrTry says that the caller did not want to wait for other holders.
	AttrTry = attribute.Key("zklock.try")

	// AttrToken is the fencing token.
	AttrToken = attribute.Key("zklock.token")

	// AttrPosition is how many contenders were ahead in the queue.
	AttrPosition = attribute.Key("zklock.queue.position")

	// AttrAheadNode is the queue node of the contender waited for.
	AttrAheadNode = attribute.Key("zklock.ahead.node")

	// AttrAheadHost is the host that its process runs on.
	AttrAheadHost = attribute.Key("zklock.ahead.host")

	// AttrAheadPID is the id of its process.
	AttrAheadPID = attribute.Key("zklock.ahead.pid")

	// AttrHanded says that a release passed the place in the queue on inside the
	// process.
	AttrHanded = attribute.Key("zklock.release.handed")

	// AttrReleaseReason is how a lock stopped being held: released or lost.
	AttrReleaseReason = attribute.Key("zklock.release.reason")

	// AttrOperation is what a request to the ensemble was for.
	AttrOperation = attribute.Key("zklock.operation.kind")

	// AttrSessionState is connected, suspended or ended.
	AttrSessionState = attribute.Key("zklock.session.state")

	// AttrSessionID is the id of the session asked last, in hexadecimal.
	AttrSessionID = attribute.Key("zklock.session.id")

	// AttrServerAddress is the host of the server asked last.
	AttrServerAddress = attribute.Key("server.address")

	// AttrServerPort is its port.
	AttrServerPort = attribute.Key("server.port")
)

// The values of AttrOutcome.
const (
	// OutcomeAcquired means that the lock was acquired, or a wait was over.
	OutcomeAcquired = "acquired"

	// OutcomeContended means that somebody else has the lock, and the caller's
	// own limit was met: a try, WithWait or a limit on waiters.
	OutcomeContended = "contended"

	// OutcomeTimeout means that the context's deadline passed during the wait
	// for another holder.
	OutcomeTimeout = "timeout"

	// OutcomeCanceled means that the caller's context was cancelled.
	OutcomeCanceled = "canceled"

	// OutcomeLost means that the lock was lost.
	OutcomeLost = "lost"

	// OutcomeError means anything else: error.type says what.
	OutcomeError = "error"
)

// The values of AttrReleaseReason.
const (
	// ReasonReleased means an orderly release.
	ReasonReleased = "released"

	// ReasonLost means a loss.
	ReasonLost = "lost"
)

// The values of AttrSessionState.
const (
	// StateConnected means that there is a connection.
	StateConnected = "connected"

	// StateSuspended means that there is none at the moment.
	StateSuspended = "suspended"

	// StateEnded means that the session is over and not yet put away.
	StateEnded = "ended"
)
