// Package connectlock holds a lock during calls of connect-go, in handlers and in clients. In all
// processes that use the same ensemble, calls that pick the same lock are served one after
// another.
//
//	pick := connectlock.ByProcedure(map[string]connectlock.Pick{
//		"/shop.v1.Orders/*": connectlock.ByField(client, "order_id", "orders/%s"),
//	})
//	lock := connectlock.HandlerInterceptor(pick, connectlock.WithFirstMessage())
//	path, handler := shopv1connect.NewOrdersHandler(server, connect.WithInterceptors(lock))
//
// It has the rules of package interceptors, which does the same for gRPC: the picks, the option
// in .proto files (package lockpb), the errors and their reasons. It does not import grpc.
//
// # Acquiring and releasing
//
// A call waits for its lock for up to 10 s (WithWait). The wait ends earlier if the client
// cancels the call or the call's own deadline passes, and shortly before the server's WriteTimeout
// (WithWriteTimeout), so that the answer still reaches the client. The handler gets a context that carries
// the lock. That context ends when the lock is lost, with the loss as its cause. With
// zklock.WithRevocable it also ends when the lock is revoked; a call that gives up because of that
// ends with canceled.
//
// The interceptor releases the lock when the handler has returned or panicked, and not before,
// even if the client has disconnected. A stream holds its lock until it ends. A handler's
// stream acquires it at its start, picked by procedure and header, or with WithFirstMessage
// when its first message arrives. A client's stream acquires it when the first message is sent.
//
// # Errors
//
//	contended: the try failed, the wait is over, too many wait   aborted (WithCode)   LOCK_CONTENDED
//	the wait was part of a deadlock (zklock.DeadlockError)       aborted (WithCode)   LOCK_DEADLOCK
//	the ensemble cannot be reached, or has lost transactions     unavailable          LOCK_UNAVAILABLE
//	  (zklock.Reason: token_regression), or the Client was closed
//	the call's own deadline passed during the wait               deadline_exceeded    LOCK_CONTENDED, or LOCK_UNAVAILABLE
//	the call was canceled during the wait                        canceled
//	the lock was lost before the handler ran                     unavailable          LOCK_UNAVAILABLE
//	the lock was lost, and the handler returned                  failed_precondition  LOCK_LOST
//	  nil, or that its context was canceled                      (WithLostCode)
//	the lock was lost, and the handler returned another error    that error
//	WithMaxHold ended the context, and the handler returned      deadline_exceeded
//	  the context's error
//	the call names no lock, or the name is invalid               invalid_argument     LOCK_NAME
//	anything else, such as zklock.ErrDeadlock or ErrMisuse;      internal             LOCK_ERROR
//	  it is logged (WithLogger)
//
// The last column is the reason of an ErrorInfo whose domain is "zklock". Reason returns it;
// ReasonContended and its kin are its values.
// Those whose handler has not run, and may be made again, also have a RetryInfo. The errors contain no names of locks or servers. In
// the process that locks, errors.Is and errors.As also find zklock's errors and the handler's
// own in them.
//
// After a loss, the handler may not have been the only holder. So the call fails even if the
// handler has not noticed the loss. From the loss on, the handler of a stream can neither send
// nor receive.
package connectlock
