// Package fence protects a resource against late writes: it refuses the work of a
// holder whose lock has since been granted to another holder.
//
// A lock alone cannot do that. Its holder may be stopped between the last check of
// the lock and the write that follows: by the scheduler, a full garbage collection or
// the migration of the machine. When the process goes on, its lease has run out,
// another process holds the lock, and the late write is on its way. Only the receiver
// of the write can detect this. Every exclusive holder of a name has a greater
// [zklock.Token] than all earlier holders. So a resource that remembers the greatest
// token it has seen recognizes a late write by its token. Chubby calls a lock's name,
// mode and number together a sequencer, and so does this package.
//
// # Resources in memory
//
// A [Guard] remembers the tokens. While it runs a write, it lets no write of a newer
// holder in between:
//
//	err := guard.Do(fence.Of(lock), func() error {
//		balance += 10
//		return nil
//	})
//	if errors.Is(err, fence.ErrStale) { ... } // nothing was done
//
// # Resources in a SQL database
//
// [InTx] and [Dialect.Check] record the token within the transaction, in the table of
// [Dialect.Schema], or refuse it. So the order of the transactions that commit is that of their tokens:
//
//	err := fence.InTx(ctx, db, fence.PostgreSQL, lock, func(tx *sql.Tx) error { ... })
//	if errors.Is(err, fence.ErrStale) { ... } // nothing was written
//
// # Other databases, or a row that remembers the token itself
//
// Store the token's text, which sorts as the token
// does, in a column of type CHAR(25) with a plain byte order (in PostgreSQL: COLLATE
// "C"). Make it part of the write's condition:
//
//	UPDATE orders
//	   SET status = 'paid', fence = $2
//	 WHERE id = $1
//	   AND (fence IS NULL OR fence <= $2)
//
// If no row was changed, the order does not exist or the token is stale. The
// comparison is <= and not <, since one holder may write more than once. If the row
// may not exist yet:
//
//	INSERT INTO orders (id, status, fence) VALUES ($1, 'new', $2)
//	    ON CONFLICT (id) DO UPDATE SET status = excluded.status, fence = excluded.fence
//	 WHERE orders.fence IS NULL OR orders.fence <= excluded.fence
//
// This is correct for exclusive locks. A reader that writes, to a cache for example,
// must compare its token with the newest writer's token only, as Guard does. Of two
// readers that hold the lock at the same time, either may have the greater token.
//
// # Resources behind another service
//
// The sequencer travels with the call, under [Key], in an HTTP header or in gRPC
// metadata. Package middleware has the transport that adds it and the option that
// checks it; package interceptors has the same for gRPC. Both are off by default. A
// receiver must decide which senders it trusts: any sender of sequencers can lock
// others out by sending a very great token.
//
// # Resources in ZooKeeper
//
// They do not need this package: zklock.Lock.Txn applies a write only while the lock
// is held.
package fence
