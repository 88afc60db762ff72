// Package ginlock holds a lock around gin handlers. It is package middleware in
// gin's terms: the same options, statuses and guarantees, which are described
// there.
//
//	lock := ginlock.New(ginlock.ByParam(client, "id", "orders/%s"))
//	router.POST("/orders/:id/pay", lock, pay)
//
// While the handlers behind it run, c.Request carries the context that carries
// the lock and ends when it is lost, and c.Writer holds answers back that come
// too late. Both are put back afterwards. A *gin.Context as such is not
// cancelled, unless the engine has ContextWithFallback: pass
// c.Request.Context() on.
//
// Errors are added to c.Errors, and the chain is aborted when a request is not
// served, so that what stands outside, such as a logger, sees both. gin.Recovery
// belongs outside too: a connection that is aborted because the lock was lost
// is aborted though Recovery keeps the panic from the server.
//
// gin's Engine.HandleContext gives the other route a writer that leads around
// the lock's. What that route answers is not held back: after a loss its
// connection is aborted when the handlers have returned.
//
// Answers are in flight as soon as a handler writes a body; c.Status and
// c.Header alone put nothing out, as always in gin.
package ginlock
