// Package interceptors holds a lock around gRPC calls: in all processes that use
// the same ensemble, calls that pick the same lock are served one after another.
//
//	pick := interceptors.ByMethod(map[string]interceptors.Pick{
//		"/shop.v1.Orders/*": interceptors.ByField(client, "order_id", "orders/%s"),
//	})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(interceptors.UnaryServerInterceptor(pick)),
//		grpc.ChainStreamInterceptor(interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage())))
//
// Calls of other services, such as health checks and reflection, are not in that
// table and pass without a lock. Or the service says in its .proto what its
// methods lock, and FromProto is all that there is to write:
//
//	import "zklock/v1/lock.proto";
//
//	rpc Pay(PayRequest) returns (Receipt) {
//	  option (zklock.v1.lock) = { name: "orders/{order_id}" mode: EXCLUSIVE wait: "2s" };
//	}
//
// Package lockpb has the file to import, and says how protoc finds it.
//
// # From acquire to release
//
// A call waits for its lock for up to 10 s (WithWait), as long as its client is
// there and its own deadline allows. The handler gets a context that carries the
// lock and ends, with the cause, when the lock is lost. The lock goes back when
// the handler has returned or panicked, be the client gone or not, and never
// before: a handler that goes on working in goroutines of its own must give them
// zklock.Detach(context.WithoutCancel(ctx)) and expect no protection. The release
// takes a round trip to the ensemble, which the end of the call waits for.
//
// A stream holds its lock for all its life. It is locked from its start by
// method and metadata, or by its first message with WithFirstMessage.
//
// # How it can end
//
//	contended: the try failed, the wait is over, too many wait   Aborted (WithCode)   LOCK_CONTENDED
//	no ensemble to be reached, or the Client was closed          Unavailable          LOCK_UNAVAILABLE
//	the call's own deadline passed during the wait               DeadlineExceeded     LOCK_CONTENDED, or LOCK_UNAVAILABLE
//	the client is gone                                           Canceled
//	the lock was lost, and the handler returned                  Aborted              LOCK_LOST
//	  nothing, or that its context has ended
//	the lock was lost, and the handler returned another error    that error
//	the call names no lock, or a bad one                         InvalidArgument      LOCK_NAME
//	the call's sequencer is stale (WithSequencerCheck)           FailedPrecondition   LOCK_STALE
//	anything else, such as zklock.ErrDeadlock or ErrMisuse;      Internal             LOCK_ERROR
//	  it is logged (WithLogger)
//
// The last column is the reason of an ErrorInfo with Domain as its domain, which
// Reason finds; the first two rows have a RetryInfo, too. The statuses tell
// nothing about locks and servers. In this process errors.Is and errors.As see
// through them, to zklock's errors and the handler's own.
//
// A loss counts though the handler knows nothing of it: it may not have been
// alone. From the loss on it can send nothing more, and receive nothing.
//
// # On the client
//
// UnaryClientInterceptor and StreamClientInterceptor hold a lock around calls to
// servers that do not lock by themselves. They fail in the same way. A call that
// is given up, because of its context or the lock's loss, may go on for a while
// on the server: what is locked where the work is done is locked better.
//
// # Where to put it
//
// Inside of everything that looks at calls as a whole, close around the handler:
//
//   - Inside of recovery, which then sees a panic after the lock was released.
//   - Inside of authentication: strangers should not queue.
//   - Stats handlers such as otelgrpc's are around all interceptors; their spans
//     comprise the wait.
//   - On a client outside of retries: one lock around all attempts. Inside, each
//     attempt queues anew.
//
// A selector around it is as good as a Pick that returns nil.
//
// # Between services
//
// A lock protects from other holders, not from a holder of before that was
// stopped for a while. Where that matters for calls to other services,
// WithSequencers sends the lock's name and fencing token along, and
// WithSequencerCheck on the other side refuses those that are stale; see package
// fence for databases and resources in memory.
package interceptors
