// Package ginlock holds a lock while gin handlers run. It is package middleware
// for gin, with the same options, statuses and guarantees. That package's
// documentation describes them.
//
//	lock := ginlock.New(ginlock.ByParam(client, "id", "orders/%s"))
//	router.POST("/orders/:id/pay", lock, pay)
//
// While the handlers behind it run, the context of c.Request carries the lock and
// ends when the lock is lost, and c.Writer sends nothing after a loss. Afterwards
// both have their former values again. Pass on c.Request.Context(): the *gin.Context itself, and one
// that its method Copy returns, never ends unless the engine has ContextWithFallback. The lock is
// released when the handlers have returned: a goroutine that goes on then works without it.
//
// If a request is not served, the chain is aborted, and its error is added to c.Errors, where
// outer middlewares such as loggers and otelgin see it. There its text has no lock name and no
// holder. A lock that is in use is not an error there: [middleware.WithObserver] reports it. gin.Recovery must
// be an outer middleware too. It keeps panics from the server, but the connection
// of a request whose lock was lost is aborted nevertheless.
//
// Do not use the lock with middlewares that run the rest of the chain in a goroutine, and answer when a time is
// up, as gin-contrib/timeout does: gin gives the *gin.Context to the next request while that goroutine
// still uses it. Outside of them the lock would be released under the handlers, and inside of them handlers
// would use another request's *gin.Context. A wait is limited by middleware.WithWait, a handler by
// middleware.WithMaxHold, and both by a middleware that sets a deadline for the context of c.Request. An
// http.TimeoutHandler around the whole engine is safe.
//
// gin's Engine.HandleContext gives the other route a writer that bypasses the
// lock's. The response of that route is not kept back. After a loss its connection
// is aborted when the handlers have returned.
//
// A response has begun as soon as a handler writes a body. As always in gin,
// c.Status and c.Header alone send nothing.
package ginlock
