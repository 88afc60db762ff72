package middleware

import (
	"context"
	"net/http"

	"github.com/zklock/go-zklock/internal/callers"
	"github.com/zklock/go-zklock/zklock/fence"
)

// WithCallerLocks makes the context of a request carry the locks that its sender holds until it gets the
// response, as the sender's: see zklock.ContextWithCallerLocks. The sender is a service that uses
// [Transport]. By default a request carries no locks of its sender.
//
// An acquisition with such a context that would have to wait for a lock of the sender fails at once, with
// zklock.ErrDeadlock. Deadlocks across services are found as those of one process are, and end with a
// [zklock.DeadlockError]. Nothing joins a lock of the sender. This holds for the lock of the middleware,
// and for those that the handler acquires.
//
// trust reports whether the sender is trusted, and uses locks of the same ensemble and root as this
// service. Many goroutines may call it at once. A sender that lies can make this service's acquisitions of
// that one request fail. So trust must depend on the sender's identity, such as its client certificate,
// and not on what it sends. The header has no effect if the sender is not trusted, or if a value of it is
// malformed. The first 32 locks of the header count.
//
// A service that calls on sends only its own locks. To send its callers' too, set the header fence.Key of
// the new request to the values of the request that came in.
//
// WithCallerLocks panics if trust is nil.
func WithCallerLocks(trust func(*http.Request) bool) Option {
	if trust == nil {
		panic("middleware: WithCallerLocks: trust is nil")
	}
	return optionFunc(func(c *config) { c.trustCaller = trust })
}

// contextOf returns the context of a request, with the locks of a trusted sender, and whether there are
// any.
func (c *config) contextOf(r *http.Request) (ctx context.Context, called bool) {
	if c.trustCaller != nil {
		if values := r.Header.Values(fence.Key); len(values) > 0 && c.trustCaller(r) {
			return callers.Context(r.Context(), values)
		}
	}
	return r.Context(), false
}
