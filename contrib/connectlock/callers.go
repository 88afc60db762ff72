package connectlock

import (
	"context"

	"github.com/zklock/go-zklock/internal/callers"
	"github.com/zklock/go-zklock/zklock/fence"
)

// WithCallerLocks makes the context of a handler's call carry the locks that the caller holds until it gets
// the reply, as the caller's: see zklock.ContextWithCallerLocks. The caller is a client whose http.Client
// has a middleware.Transport, or a gRPC client with interceptors.WithSequencers. By default a call carries
// no locks of its caller. The option has no effect on a client.
//
// An acquisition with such a context that would have to wait for a lock of the caller fails at once, with
// zklock.ErrDeadlock. Deadlocks across services are found as those of one process are, and end with a
// [zklock.DeadlockError]. Nothing joins a lock of the caller. This holds for the lock of the interceptor,
// and for those that the handler acquires.
//
// trust reports whether the caller is trusted, and uses locks of the same ensemble and root as this server.
// Many goroutines may call it at once. A caller that lies can make this server's acquisitions of that one
// call fail. So trust must depend on the caller's identity, such as what an authentication outside has put
// into ctx, and not on what the caller sends. The header has no effect if the caller is not trusted, or if
// a value of it is malformed. The first 32 locks of the header count.
//
// A server that calls on sends only its own locks. To send its callers' too, set the header fence.Key of
// the new call to the values of the call that came in.
//
// WithCallerLocks panics if trust is nil.
func WithCallerLocks(trust func(ctx context.Context, call Call) bool) Option {
	if trust == nil {
		panic("connectlock: WithCallerLocks: trust is nil")
	}
	return option(func(c *config) { c.trustCaller = trust })
}

// withCaller returns ctx with the locks of a trusted caller of a handler.
func (c *config) withCaller(ctx context.Context, call Call) context.Context {
	if c.trustCaller != nil {
		if values := call.Header.Values(fence.Key); len(values) > 0 && c.trustCaller(ctx, call) {
			ctx, _ = callers.Context(ctx, values)
		}
	}
	return ctx
}
