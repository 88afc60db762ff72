// Package middleware holds a lock around an HTTP handler: in all processes that
// use the same ensemble, requests that pick the same lock are served one after
// another.
//
//	lock := middleware.New(middleware.ByPathValue(client, "id", "orders/%s"))
//	mux.Handle("POST /orders/{id}/pay", lock(http.HandlerFunc(pay)))
//
// It is for net/http and every router that takes func(http.Handler)
// http.Handler; package ginlock is the same for gin.
//
// # From acquire to release
//
// A request waits for its lock for up to 10 s (WithWait), as long as its client
// is there and its own deadline allows. The handler gets a request whose
// context carries the lock and ends, with the cause, when the lock is lost. The
// lock goes back when the handler has returned or panicked, be the client gone
// or not, and never before: a handler that goes on working in goroutines of its
// own must give them zklock.Detach(context.WithoutCancel(ctx)) and expect no
// protection. The release takes a round trip to the ensemble, which the end of
// the response waits for.
//
// A handler that hijacks the connection, and one that streams, hold the lock
// until they return.
//
// # How it can end
//
//	contended: the try failed, the wait is over, too many wait    423 (WithStatus) and Retry-After
//	no ensemble to be reached, or the Client was closed           503 and Retry-After
//	the request's own deadline passed during the wait             503 and Retry-After
//	the body took longer than the wait (WithBufferBody)           408 and Retry-After
//	the request was canceled during the wait: by the server,      503 and Retry-After
//	  since the client is gone, or by others
//	the lock was lost before the handler wrote anything           503, with none of its headers
//	the lock was lost later                                       the connection is aborted
//	the request names no lock, or a bad one                       400
//	the request's sequencer is stale (WithSequencerCheck)         409
//	anything else, such as zklock.ErrDeadlock or ErrMisuse        500, and logged (WithLogger)
//
// The answers are application/problem+json (RFC 9457) with the member "reason",
// one of the Reason constants. They tell nothing about locks and servers.
//
// A loss counts whatever the handler returned: it may not have been alone. Its
// answer is kept back if nothing of it is out. If something is, the connection
// (of HTTP/2: the stream) is cut, so that nobody takes what is there for the
// whole; clients see an unexpected end. Bytes that a handler has flushed, with
// a Content-Length that they fulfil, are a whole answer all the same.
//
// # The ResponseWriter
//
// To that end handlers get a ResponseWriter that wraps the server's. It has
// http.Flusher, http.Hijacker, http.Pusher and http.CloseNotifier if that has
// them, and http.ResponseController works through it. Whoever unwraps it down
// to the server's and writes there writes without protection.
//
// # Where to put it
//
// Inside of everything that looks at requests and answers as a whole, close
// around the handler:
//
//   - Behind the mux, if the pick goes by path values.
//   - Inside of http.TimeoutHandler. That one answers when the time is up while
//     the handler is still running; around it, the lock would be released then,
//     under the running handler.
//   - Inside of recovery, which then sees a panic after the lock was released,
//     and answers it. It should let http.ErrAbortHandler through; if it does
//     not, the connection is aborted all the same where the server's
//     ResponseWriter can be reached by Unwrap.
//   - Inside or outside of compression on the fly: an error answer leaves the
//     Content-Encoding to the middleware outside that has set it.
//   - Inside of tracing such as otelhttp, whose server span then comprises the
//     wait, and inside of authentication: strangers should not queue.
//
// # Between services
//
// A lock protects from other holders, not from a holder of before that was
// stopped for a while. Where that matters for calls to other services,
// Transport sends the lock's name and fencing token along, and
// WithSequencerCheck on the other side refuses those that are stale; see
// package fence for databases and resources in memory.
package middleware
