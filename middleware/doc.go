// Package middleware holds a lock while an HTTP handler runs. In all processes
// that use the same ensemble, requests that pick the same lock are served one
// after another.
//
//	lock := middleware.New(middleware.ByPathValue(client, "id", "orders/%s"))
//	mux.Handle("POST /orders/{id}/pay", lock(http.HandlerFunc(pay)))
//
// It works with net/http and with every router that takes func(http.Handler)
// http.Handler. Package ginlock is the same for gin.
//
// # Acquiring and releasing
//
// A request waits for its lock for up to 10 s (WithWait). The wait ends earlier
// if the client disconnects, and shortly before the request's own deadline or the
// server's WriteTimeout ([WithWriteTimeout]), so that the response still reaches the
// client. A WriteTimeout that is shorter than the waits that are to be expected makes them
// fail: let it be longer than WithWait plus what the handler needs. The handler
// gets a request whose context carries the lock. That context ends when the lock
// is lost, with the loss as its cause.
//
// The middleware releases the lock when the handler has returned or panicked,
// and not before, even if the client has disconnected. A handler that streams, or
// that hijacks the connection, holds the lock until it returns. Goroutines that
// outlive the handler need zklock.Detach(context.WithoutCancel(ctx)) as their
// context, and the lock does not protect them. The release takes a round trip to
// the ensemble, and the end of the response waits for it.
//
// # Error responses
//
//	contended: the try failed, the wait is over, too many wait    423 (WithStatus) and Retry-After
//	the ensemble cannot be reached, or has lost transactions      503 and Retry-After
//	  (zklock.Reason: token_regression), or the Client was closed
//	the server's WriteTimeout left no time to wait on             as contended, or 503 in an outage
//	the request's own deadline was near, or passed                503 and Retry-After
//	the body took longer than the wait, or the WriteTimeout       408 and Retry-After
//	  (WithBufferBody)
//	the request was canceled during the wait: by the server,      503 and Retry-After
//	  since the client has disconnected, or by a middleware
//	the lock was lost before the handler ran                      503 and Retry-After
//	the lock was lost before the handler wrote anything           424 (WithLostStatus), without the
//	                                                              handler's headers
//	the lock was lost later                                       the connection is aborted
//	the request names no lock, or the name is invalid             400
//	the request's sequencer is stale (WithSequencerCheck)         409
//	anything else, such as zklock.ErrDeadlock or ErrMisuse        500, and logged (WithLogger)
//
// A zklock.DeadlockError is answered like a wait that was too long, with the reason LOCK_DEADLOCK: a
// sender that holds locks should release them and begin again.
//
// The responses are application/problem+json (RFC 9457) with the member "reason",
// which is one of the Reason constants. They contain no names of locks or servers.
//
// After a loss, the handler may not have been the only holder. So the middleware
// does not deliver its response, whatever the handler did. If no byte of the
// response has been sent, the client gets the 424, which nothing on the way repeats by itself: the
// handler's work may be done. Otherwise the middleware aborts
// the connection (in HTTP/2: the stream), so that the client does not take a part
// of the response for the whole: it sees an unexpected end. There is one
// exception. If the handler has flushed as many bytes as its Content-Length
// announces, the client already has a complete response.
//
// Some clients send a request again when its connection ends before the response: a POST, too,
// as hashicorp/go-retryablehttp does; Go's own client, over HTTP/1, a GET and each request that has
// an Idempotency-Key. A handler that has written, and not flushed, when its lock is lost gives them
// that reason. So a handler with effects writes its response last, and its requests have an
// idempotency key.
//
// # The ResponseWriter
//
// For this, handlers get a ResponseWriter that wraps the server's. It implements
// http.Flusher, http.Hijacker, http.Pusher and http.CloseNotifier if the server's
// does, and http.ResponseController works with it. If a handler unwraps it and writes
// to the server's ResponseWriter directly, these writes are not protected.
//
// # Order of middlewares
//
// The lock belongs close to the handler, inside everything that handles requests
// and responses as a whole:
//
//   - Behind the mux, if the pick uses path values.
//   - Inside http.TimeoutHandler. That handler responds when the time is up,
//     while the handler inside it still runs. A lock around http.TimeoutHandler
//     would be released at that moment, under the running handler.
//   - Inside other middlewares that respond while the handler still runs only if they
//     are like it: they set a deadline for the request's context, so that the lock
//     responds before it, and give the handler a copy of the request and a ResponseWriter that
//     ignores what comes too late. When the context has ended, a lock in a goroutine
//     of theirs touches neither the response nor the request. A handler does.
//   - Inside recovery. Recovery then sees a panic after the lock was released,
//     and writes the response. It should not swallow http.ErrAbortHandler. If it
//     does, the middleware still aborts the connection, provided that Unwrap
//     leads to the server's ResponseWriter.
//   - Inside or outside compression on the fly. An error response keeps the
//     Content-Encoding that an outer middleware has set.
//   - Inside tracing such as otelhttp, so that its server span includes the wait.
//   - Inside authentication, so that unknown clients cannot queue.
//
// # Calls to other services
//
// A lock keeps out other holders. It does not stop a former holder that was
// paused, lost the lock, and continues. If that matters for calls to other services, use
// [Transport]. It sends the lock's name and fencing token with each request, and
// WithSequencerCheck in the receiving service refuses stale ones. Package fence does the same
// for databases and for resources in memory.
//
// A service that is called under a lock must not wait for that lock: the caller releases it only after the
// response. [WithCallerLocks] in the receiving service makes such an acquisition fail at once, and finds
// deadlocks that go through calls.
package middleware
