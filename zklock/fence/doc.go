// Package fence is for what a lock protects: it refuses the work of holders
// whose lock has passed on to somebody else.
//
// A lock alone cannot do that. A process that holds one may be stopped, by the
// scheduler, a full garbage collection or a migrated machine, between the last
// look at its lock and the write that follows. When it goes on, the lease has
// run out, another process has the lock, and the write is on its way. Only the
// one who takes the write can tell: every exclusive holder of a name has a
// greater [zklock.Token] than all who held it before, so a resource that
// remembers the greatest one it has seen knows a late write by its token.
// Chubby calls the lock's name, mode and number together a sequencer; so does
// this package.
//
// # Resources in memory
//
// A [Guard] remembers the tokens and runs the write while no newer holder's
// write can come in between:
//
//	err := guard.Do(fence.Of(lock), func() error {
//		balance += 10
//		return nil
//	})
//	if errors.Is(err, fence.ErrStale) { ... } // nothing was done
//
// # Resources in a database
//
// There the row remembers. Keep the token's text, which sorts as the token
// does, in a column of type CHAR(25) with a plain byte order (in PostgreSQL:
// COLLATE "C"), and make it part of the write's condition:
//
//	UPDATE orders
//	   SET status = 'paid', fence = $2
//	 WHERE id = $1
//	   AND (fence IS NULL OR fence <= $2)
//
// No row changed means that the order is gone or the token is stale. The
// comparison is <= and not <, since one holder may write more than once. Where
// the row may not exist yet:
//
//	INSERT INTO orders (id, status, fence) VALUES ($1, 'new', $2)
//	    ON CONFLICT (id) DO UPDATE SET status = excluded.status, fence = excluded.fence
//	 WHERE orders.fence IS NULL OR orders.fence <= excluded.fence
//
// That is right for exclusive locks. A reader that writes, to a cache say, must
// compare with the newest writer's token only, as Guard does: of two readers
// that hold the lock at once, either may have the greater token.
//
// # Resources behind another service
//
// The sequencer travels with the call, under [Key], in an HTTP header or in
// gRPC metadata: package middleware has the transport that adds it and the
// option that checks it, package interceptors the same for gRPC. Both ends are
// off until asked for. A receiver must know whom it believes: whoever may send
// sequencers can lock others out by sending a great one.
//
// # Resources in ZooKeeper
//
// They need none of this: zklock.Lock.Txn applies a write only while the lock
// is held.
package fence
