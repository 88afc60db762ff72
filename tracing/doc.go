// Package tracing makes OpenTelemetry spans and metrics of what a zklock.Client
// does: who waits for which lock, for whom, and for how long.
//
//	client, err := zklock.Open(url, zklock.WithHooks(tracing.Hooks()))
//	registration, err := tracing.RegisterStats(client)
//
// It uses the OpenTelemetry API only; spans and metrics go to the global
// providers, or to those given with WithTracerProvider and WithMeterProvider.
//
// # Who made me wait
//
// Every place in a lock's queue carries the traceparent of the request that
// took it: in the data of its queue node, and, for those who wait in the same
// process, in memory. The next in line reads that node anyway, in order to
// watch it. So the wait span links to the acquire span of the contender waited
// for: in a trace viewer one click leads from the slow request to the one that
// made it wait, in whichever process and on whichever host that ran. Each time
// the contender ahead changes, the wait span gets an event and another link.
//
// A place that is handed over inside a process keeps the data of the request that
// took it. So where the request linked to was fast, the links go on from there:
// its release span links to the request that got the place from it, whose
// release span may link to the next.
//
// A queue node is readable for everybody who may read the queue, and with it
// the ids of the trace; no tracestate and no baggage goes there.
//
// # Losses
//
// A lock that is lost puts the event zklock.lost and an error status on the span
// in which it was acquired, the request's, if that has not ended yet; and on
// the hold span, if there is one. Its release, if there is one, ends with an
// error.
//
// # Names and privacy
//
// Spans show the names of locks as they are; WithName maps them, or leaves them
// off, and with them the texts of errors. Metrics show none, since each would
// be a time series of its own, unless WithNameAttribute maps them to few values.
//
// # Spans
//
// All are of kind client. Their status is an error for the outcomes lost and
// error only: that a lock is taken, or that the caller went away, is an answer.
//
//	zklock.acquire    an acquisition    zklock.mode, zklock.try, zklock.outcome, zklock.name, zklock.token, error.type, zklock.session.id, server.address, server.port
//	zklock.wait       waiting for others, a child of zklock.acquire; links to those waited for
//	                                    zklock.mode, zklock.outcome, zklock.name, error.type, zklock.queue.position, zklock.ahead.node, zklock.ahead.host, zklock.ahead.pid
//	zklock.release    a release; links to its zklock.acquire, and to that of who got the place by hand-over
//	                                    zklock.mode, zklock.name, zklock.token, zklock.release.handed, error.type, zklock.session.id, server.address, server.port
//	zklock.hold       WithHoldSpan; links to its zklock.acquire
//	                                    zklock.mode, zklock.name, zklock.token
//
// Their events:
//
//	zklock.ahead      on zklock.wait: the one waited for has changed
//	                                    zklock.queue.position, zklock.ahead.node, zklock.ahead.host, zklock.ahead.pid
//	zklock.handover   on zklock.wait: the place was passed on in this process
//	zklock.lost       on the request's span and zklock.hold
//	                                    zklock.mode, zklock.name, zklock.token, error.type
//
// # Metrics
//
// Those of Hooks, and, from zklock.session.count on, of RegisterStats:
//
//	zklock.acquire.duration       histogram   s            zklock.mode, zklock.outcome, error.type, zklock.name
//	zklock.wait.duration          histogram   s            zklock.mode, zklock.outcome, error.type, zklock.name
//	zklock.hold.duration          histogram   s            zklock.mode, zklock.release.reason, zklock.name
//	zklock.held                   gauge       {lock}       zklock.mode, zklock.name
//	zklock.waiting                gauge       {lock}       zklock.mode, zklock.name
//	zklock.lost                   counter     {lock}       zklock.mode, error.type, zklock.name
//	zklock.handovers              counter     {lock}       zklock.mode, zklock.name
//	zklock.operation.duration     histogram   s            zklock.operation.kind, error.type
//	zklock.operation.group_size   histogram   {request}    zklock.operation.kind
//	zklock.session.lost           counter     {session}
//	zklock.session.reconnects     counter     {session}
//	zklock.lease.remaining        histogram   s
//	zklock.session.count          gauge       {session}    zklock.session.state
//	zklock.session.draining       gauge       {session}
//	zklock.session.max            gauge       {session}
//	zklock.session.opened         counter     {session}
//
// # Attributes
//
//	zklock.mode              exclusive, shared or permit: as it was acquired
//	zklock.outcome           acquired; contended: a try, WithWait or a limit on waiters; timeout: the context's deadline;
//	                         canceled: the context; lost; error: anything else, a session that cannot be had included
//	error.type               the kind of a failure, for the outcomes lost and error: the name of zklock's error in small
//	                         letters (unavailable, closed, deadlock ...), that of the driver's, or _OTHER
//	zklock.name              the lock's name, as the options have it
//	zklock.try               the caller does not wait for other holders
//	zklock.token             the fencing token
//	zklock.queue.position    how many contenders were ahead
//	zklock.ahead.node        the queue node of the one waited for
//	zklock.ahead.host        the host of its process
//	zklock.ahead.pid         the id of its process
//	zklock.release.handed    the place was passed on in this process, or is still shared
//	zklock.release.reason    released or lost
//	zklock.operation.kind    what a request was for: enqueue, release, watch ...
//	zklock.session.state     connected, suspended or ended
//	zklock.session.id        the id of the session asked last, in hexadecimal
//	server.address           the host of the server asked last
//	server.port              its port
package tracing
