package interceptors

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/zklock/go-zklock/zklock"
)

// Call is what a Pick goes by.
type Call struct {
	// FullMethod is the method, as in "/shop.v1.Orders/Pay".
	FullMethod string

	// Request is the request message of a unary call, and the first one of a
	// stream under WithFirstMessage, or nil if that stream ends without any.
	// It is nil for all other streams. A Pick must not change or keep it.
	Request any

	// Metadata is what came with the call on a server, and what goes with it on
	// a client. It is the Pick's own copy.
	Metadata metadata.MD

	// ClientStream says that the client may send more than one message.
	ClientStream bool

	// ServerStream says that the server may send more than one message.
	ServerStream bool
}

// Pick says which lock a call needs; nil lets it pass without one. It is called
// once a call, by the goroutine that makes or serves it, and many of them call
// it at once.
type Pick = func(ctx context.Context, call Call) zklock.Acquirer

// incoming is the metadata of a call on the server.
func incoming(ctx context.Context) metadata.MD {
	md, _ := metadata.FromIncomingContext(ctx)
	return md
}

// outgoing is the metadata of a call on the client.
func outgoing(ctx context.Context) metadata.MD {
	md, _ := metadata.FromOutgoingContext(ctx)
	return md
}
