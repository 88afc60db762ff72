// Package tracing makes OpenTelemetry spans and metrics for a zklock.Client. They show which
// lock a request waits for, which request is ahead of it, and for how long.
//
//	client, err := zklock.Open(url, zklock.WithHooks(tracing.Hooks()))
//	registration, err := tracing.RegisterStats(client)
//
// It uses the OpenTelemetry API only; spans and metrics go to the global
// providers, or to those given with WithTracerProvider and WithMeterProvider.
//
// # Links to the holder
//
// Every place in a lock's queue has the traceparent of the request that created
// it: in the data of its queue node and, for waiters of the same process, in
// memory. The next waiter reads that node anyway, in order to watch it. So its
// wait span links to the acquire span of the contender ahead. In a trace viewer,
// one click leads from a slow request to the one that it waited for, in any
// process on any host. Each time the contender ahead changes, the wait span gets
// an event and another link.
//
// A place that is handed over inside a process keeps the traceparent of the
// request that created it, until a holder has stayed for long enough to be written
// there: then the wait span gets another link. If the newest linked request was fast,
// follow the links from there: its release span links to the request that got the place next, and
// the release span of that request may link to another. A client that keeps a name (URL key keep)
// writes no traceparent into its node before it has seen another client's waiter.
//
// Clients that may read the queue can read queue nodes, and so the trace ids.
// Queue nodes contain neither tracestate nor baggage.
//
// # Deadlocks
//
// If a deadlock ends a wait (zklock.DeadlockError), the wait span has the outcome error and the error.type
// deadlock. It links to the acquire spans of the other acquisitions that waited in the deadlock. If names
// are shown unchanged, the text of its status says which process held and wanted what.
//
// # Losses
//
// When a lock is lost, the caller's span, usually the request's, gets the event zklock.lost and
// an error status if it has not ended. So does the hold span, if there is one. If the lock is
// released after the loss, the release span has an error.
//
// # Names and privacy
//
// Spans show the names of locks unchanged by default. WithName maps or omits them,
// and also omits the texts of errors, which contain names. Metrics do not have
// names, because each name would be a separate time series. WithNameAttribute maps
// names to a few values and adds these to the metrics.
//
// # Spans
//
// All spans are of kind client. Their status is an error only for the outcomes
// lost and error. A lock that is taken, or a caller that cancels, is not an error.
//
//	zklock.acquire    an acquisition    zklock.mode, zklock.try, zklock.candidacy, zklock.outcome, zklock.name, zklock.token, error.type, zklock.session.id, server.address, server.port
//	zklock.wait       waiting for other holders, a child of zklock.acquire; links to the contenders ahead
//	                                    zklock.mode, zklock.outcome, zklock.name, zklock.candidacy, error.type, zklock.queue.position, zklock.ahead.node, zklock.ahead.host, zklock.ahead.pid
//	zklock.release    a release; links to its zklock.acquire, and to that of the request that got the place by hand-over
//	                                    zklock.mode, zklock.name, zklock.token, zklock.release.handed, error.type, zklock.session.id, server.address, server.port
//	zklock.hold       the time a lock is held (WithHoldSpan); links to its zklock.acquire
//	                                    zklock.mode, zklock.name, zklock.candidacy, zklock.token
//
// Their events:
//
//	zklock.ahead      on zklock.wait: the contender ahead has changed
//	                                    zklock.queue.position, zklock.ahead.node, zklock.ahead.host, zklock.ahead.pid
//	zklock.deadlock   on zklock.wait: a deadlock has ended the wait; the newest links lead to the other waits of it
//	                                    zklock.deadlock.waits
//	zklock.handover   on zklock.wait: the place was passed on in this process
//	zklock.lost       on the request's span and zklock.hold
//	                                    zklock.mode, zklock.name, zklock.token, error.type
//
// # Elections
//
// A candidate waits, and a leader holds, for as long as nothing is wrong. zklock.wait.duration,
// zklock.wait.longest and zklock.hold.longest leave both out. Other measurements of them have the
// attribute zklock.candidacy, so that zklock_candidacy!="true" leaves them out of a query. The same is
// so for all acquisitions with zklock.WithCandidacy. A request that waits for a leader counts as a wait.
//
// # Metrics
//
// Hooks makes these metrics, except those from zklock.sessions on, which
// RegisterStats makes:
//
//	zklock.acquire.duration       histogram   s            zklock.mode, zklock.outcome, error.type, zklock.candidacy, zklock.name
//	zklock.wait.duration          histogram   s            zklock.mode, zklock.outcome, error.type, zklock.name
//	zklock.hold.duration          histogram   s            zklock.mode, zklock.release.reason, zklock.candidacy, zklock.name
//	zklock.stop.duration          histogram   s            zklock.mode, error.type, zklock.candidacy, zklock.name
//	zklock.held                   gauge       {lock}       zklock.mode, zklock.candidacy, zklock.name
//	zklock.waiting                gauge       {lock}       zklock.mode, zklock.candidacy, zklock.name
//	zklock.lost                   counter     {lock}       zklock.mode, error.type, zklock.candidacy, zklock.name
//	zklock.deadlocks              counter     {wait}       zklock.mode, zklock.candidacy, zklock.name
//	zklock.handovers              counter     {lock}       zklock.mode, zklock.name
//	zklock.operation.duration     histogram   s            zklock.operation.kind, error.type
//	zklock.operation.group_size   histogram   {request}    zklock.operation.kind
//	zklock.session.lost           counter     {session}
//	zklock.session.reconnects     counter     {session}
//	zklock.session.silent         counter     {session}
//	zklock.lease.remaining        histogram   s
//	zklock.sessions               gauge       {session}    zklock.session.state
//	zklock.session.draining       gauge       {session}
//	zklock.session.max            gauge       {session}
//	zklock.session.opened         counter     {session}
//	zklock.session.reaped         counter     {session}
//	zklock.hold.longest           gauge       s            zklock.client
//	zklock.wait.longest           gauge       s            zklock.client
//	zklock.forgotten              counter     {lock}
//	zklock.backlog                gauge       {write}
//	zklock.tokens.regressed       gauge       {client}
//
// # Attributes
//
//	zklock.mode              exclusive, shared or permit: the mode of the acquisition
//	zklock.outcome           acquired; contended: ended by a try, WithWait or a limit on waiters; timeout: ended by the
//	                         context's deadline; canceled: ended by the context; lost; error: anything else, also a
//	                         missing session
//	error.type               the kind of a failure, for the outcomes lost and error: the name of zklock's error in lower
//	                         case (unavailable, closed, deadlock ...), or of the driver's, or _OTHER. Of a zklock.ErrBadEnsemble:
//	                         its zklock.Reason. Of zklock.stop.duration: lost, closed or revoked
//	zklock.name              the lock's name, as WithName or WithNameAttribute maps it
//	zklock.try               true if the caller does not wait for other holders
//	zklock.candidacy         true for acquisitions with zklock.WithCandidacy, such as an election's, and their locks
//	zklock.token             the fencing token
//	zklock.queue.position    how many contenders were ahead
//	zklock.deadlock.waits    how many waits were in the deadlock
//	zklock.ahead.node        the queue node of the contender ahead
//	zklock.ahead.host        the host of its process
//	zklock.ahead.pid         the id of its process
//	zklock.release.handed    true if the place was passed on in this process, or is still shared
//	zklock.release.reason    released or lost
//	zklock.operation.kind    the purpose of a request to the ensemble: enqueue, release, watch ...
//	zklock.session.state     connected, suspended or ended
//	zklock.client            the number of the call of RegisterStats, from 1 on: keeps values apart that cannot be added
//	zklock.session.id        the id of the session of the last request, in hexadecimal
//	server.address           the host of the server of the last request
//	server.port              its port
package tracing
