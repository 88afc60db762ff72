package interceptors

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/internal/callers"
	"github.com/zklock/go-zklock/zklock/fence"
)

// WithCallerLocks makes the context of a call on a server carry the locks that the caller holds until it
// gets the reply, as the caller's: see zklock.ContextWithCallerLocks. The caller is a client with
// WithSequencers. By default a call carries no locks of its caller. The option has no effect on a client.
//
// An acquisition with such a context that would have to wait for a lock of the caller fails at once, with
// zklock.ErrDeadlock. Deadlocks across services are found as those of one process are, and end with a
// [zklock.DeadlockError]. Nothing joins a lock of the caller. This holds for the lock of the interceptor,
// and for those that the handler acquires.
//
// trust reports whether the caller is trusted, and uses locks of the same ensemble and root as this server.
// Many goroutines may call it at once. A caller that lies can make this server's acquisitions of that one
// call fail. So trust must depend on the caller's identity, such as the certificate that package peer finds
// in ctx, and not on what the caller sends. The metadata has no effect if the caller is not trusted, or if
// a value of it is malformed. The first 32 locks of the metadata count.
//
// A server that calls on sends only its own locks. To send its callers' too, append the values of fence.Key
// in the incoming metadata to the outgoing metadata.
//
// WithCallerLocks panics if trust is nil.
func WithCallerLocks(trust func(ctx context.Context, call Call) bool) Option {
	if trust == nil {
		panic("interceptors: WithCallerLocks: trust is nil")
	}
	return optionFunc(func(c *config) { c.trustCaller = trust })
}

// withCaller returns ctx with the locks of a trusted caller, and whether there are any.
func (c *config) withCaller(ctx context.Context, call Call) (with context.Context, called bool) {
	if c.trustCaller != nil {
		if values := metadata.ValueFromIncomingContext(ctx, fence.Key); len(values) > 0 && c.trustCaller(ctx, call) {
			return callers.Context(ctx, values)
		}
	}
	return ctx, false
}

// calledStream is a stream whose context carries the locks of the caller.
type calledStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *calledStream) Context() context.Context { return s.ctx }
