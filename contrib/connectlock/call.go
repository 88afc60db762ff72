package connectlock

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/zklock"
)

// Call describes a call to a Pick.
type Call struct {
	// Procedure is the method, as in "/shop.v1.Orders/Pay".
	Procedure string

	// Request is the request message of a unary call, and the first message that a client
	// sends on a stream. For a handler's stream it is nil without WithFirstMessage. It is
	// also nil if the stream ends without a message. A Pick must not change or keep it.
	Request any

	// Header is the header of the request. A Pick must not change or keep it.
	Header http.Header

	// ClientStream is true if the client may send more than one message.
	ClientStream bool

	// ServerStream is true if the server may send more than one message.
	ServerStream bool
}

// Pick chooses the lock that a call needs. If it returns nil, the call is made or served
// without a lock. It is called once per call, by a goroutine that makes or serves the call.
// Many goroutines may call a Pick at once.
type Pick = func(ctx context.Context, call Call) zklock.Acquirer

// newCall describes a call without its message.
func newCall(spec connect.Spec, header http.Header) Call {
	return Call{
		Procedure:    spec.Procedure,
		Header:       header,
		ClientStream: spec.StreamType&connect.StreamTypeClient != 0,
		ServerStream: spec.StreamType&connect.StreamTypeServer != 0,
	}
}
