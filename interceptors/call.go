package interceptors

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/zklock"
)

// Call describes a call to a Pick.
type Call struct {
	// FullMethod is the method, as in "/shop.v1.Orders/Pay".
	FullMethod string

	// Request is the request message of a unary call. With WithFirstMessage it is
	// the first message of a stream, or nil if the stream ends without one. For
	// all other streams it is nil. A Pick must not change or keep it.
	Request any

	// Metadata is the metadata of the call: on a server what came with it, on a
	// client what is sent with it. It is a copy, which the Pick may change.
	Metadata metadata.MD

	// ClientStream is true if the client may send more than one message.
	ClientStream bool

	// ServerStream is true if the server may send more than one message.
	ServerStream bool
}

// Pick chooses the lock that a call needs. If it returns nil, the call is made or
// served without a lock. It is called once per call, by a goroutine that makes or
// serves the call. Many goroutines may call a Pick at once.
type Pick = func(ctx context.Context, call Call) zklock.Acquirer

// incoming returns the metadata of a call on the server.
func incoming(ctx context.Context) metadata.MD {
	md, _ := metadata.FromIncomingContext(ctx)
	return md
}

// outgoing returns the metadata of a call on the client.
func outgoing(ctx context.Context) metadata.MD {
	md, _ := metadata.FromOutgoingContext(ctx)
	return md
}
