// Package interceptors holds a lock during gRPC calls. In all processes that use
// the same ensemble, calls that pick the same lock are served one after another.
//
//	pick := interceptors.ByMethod(map[string]interceptors.Pick{
//		"/shop.v1.Orders/*": interceptors.ByField(client, "order_id", "orders/%s"),
//	})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(interceptors.UnaryServerInterceptor(pick)),
//		grpc.ChainStreamInterceptor(interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage())))
//
// Calls of services that are not in the table, such as health checks and
// reflection, are served without a lock. Alternatively, the service's .proto file
// declares what its methods lock, and FromProto is the pick:
//
//	import "zklock/v1/lock.proto";
//
//	rpc Pay(PayRequest) returns (Receipt) {
//	  option (zklock.v1.lock) = { name: "orders/{order_id}" mode: EXCLUSIVE wait: "2s" };
//	}
//
// Package lockpb contains the file to import, and says how protoc finds it.
//
// # Acquiring and releasing
//
// A call waits for its lock for up to 10 s (WithWait). The wait ends earlier if
// the client cancels the call or the call's own deadline passes; or, if the gRPC
// server is a handler of net/http, shortly before that server's WriteTimeout
// ([WithWriteTimeout]). The handler gets
// a context that carries the lock. That context ends when the lock is lost, with
// the loss as its cause. With zklock.WithRevocable it also ends when the lock is
// revoked; a call that gives up because of that ends with Canceled.
//
// The interceptor releases the lock when the handler has returned or panicked, and
// not before, even if the client has disconnected. Goroutines that outlive the
// handler need zklock.Detach(context.WithoutCancel(ctx)) as their context, and the
// lock does not protect them. The release takes a round trip to the ensemble, and
// the end of the call waits for it.
//
// A stream holds its lock until it ends. It acquires the lock at its start, picked
// by method and metadata. With WithFirstMessage it acquires the lock when its first
// message arrives, picked by that message.
//
// # Errors
//
//	contended: the try failed, the wait is over, too many wait   Aborted (WithCode)   LOCK_CONTENDED
//	the wait was part of a deadlock (zklock.DeadlockError)       Aborted (WithCode)   LOCK_DEADLOCK
//	the ensemble cannot be reached, or has lost transactions     Unavailable          LOCK_UNAVAILABLE
//	  (zklock.Reason: token_regression), or the Client was closed
//	the call's own deadline passed during the wait               DeadlineExceeded     LOCK_CONTENDED, or LOCK_UNAVAILABLE
//	the call was canceled during the wait                        Canceled
//	the lock was lost before the handler ran                     Unavailable          LOCK_UNAVAILABLE
//	the lock was lost, and the handler returned                  FailedPrecondition   LOCK_LOST
//	  nil, or that its context has ended                         (WithLostCode)
//	the lock was lost, and the handler returned another error    that error
//	the call names no lock, or the name is invalid               InvalidArgument      LOCK_NAME
//	the call's sequencer is stale (WithSequencerCheck)           FailedPrecondition   LOCK_STALE
//	anything else, such as zklock.ErrDeadlock or ErrMisuse;      Internal             LOCK_ERROR
//	  it is logged (WithLogger)
//
// The last column is the reason of an ErrorInfo whose domain is Domain. Reason
// returns it. Those whose handler has not run, and may be made again, also have a RetryInfo. The statuses contain no
// names of locks or servers. In the process that locks, errors.Is and errors.As
// also find zklock's errors and the handler's own in these errors.
//
// After a loss, the handler may not have been the only holder. So the call fails
// even if the handler has not noticed the loss. From the loss on, the handler of a
// stream can neither send nor receive.
//
// # Clients
//
// UnaryClientInterceptor and StreamClientInterceptor hold a lock during calls to
// servers that do not lock. Their errors are the same. If the client gives a call
// up, because of its context or because the lock is lost, the server may continue
// the call for a while. So it is safer to lock in the server, where the work is
// done. Attempts of a retry policy, or of hedging, inside of a client's lock share it, so two handlers can work
// at once: see "Clients" in docs/adapters.md for what to use.
//
// # Order of interceptors
//
// The lock belongs close to the handler, inside everything that handles calls as a
// whole:
//
//   - Inside recovery, which then sees a panic after the lock was released.
//   - Inside authentication, so that unknown clients cannot queue.
//   - Stats handlers such as otelgrpc's are outside all interceptors. Their spans
//     include the wait.
//   - On a client, outside retries: one lock for all attempts. Inside, each attempt
//     queues again.
//
// A selector around the interceptor has the same effect as a Pick that returns nil.
//
// # Calls to other services
//
// A lock keeps out other holders. It does not stop a former holder that was
// paused, lost the lock, and continues. If that matters for calls to other services, use
// [WithSequencers]. It sends the lock's name and fencing token with each call, and
// WithSequencerCheck in the receiving service refuses stale ones. Package fence does the same
// for databases and for resources in memory.
//
// A server that is called under a lock must not wait for that lock: the caller releases it only after the
// reply. [WithCallerLocks] in the receiving service makes such an acquisition fail at once, and finds
// deadlocks that go through calls.
package interceptors
