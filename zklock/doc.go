// Package zklock provides distributed locks on Apache ZooKeeper.
//
//	import (
//		"github.com/zklock/go-zklock/zklock"
//		_ "github.com/zklock/go-zklock/zklock/zkdriver"
//	)
//
//	client, err := zklock.Open("zk://zk1:2181,zk2:2181,zk3:2181/shop/locks")
//	...
//	defer client.Close()
//
//	err = zklock.Do(ctx, client.Mutex("orders/42"), func(ctx context.Context, lock *zklock.Lock) error {
//		return charge(ctx, lock.Token())
//	})
//
// A [Client] keeps a few sessions with the ensemble and shares them among any
// number of locks. A [Mutex] is the name of a lock; acquiring it returns a
// [Lock]. [Do] acquires, calls a function and releases, which is what most
// programs need. There are also [RWMutex], whose readers hold together,
// [Semaphore], and [All], which takes several names as one lock.
//
// A blank import chooses the driver, as in database/sql: zkdriver for zk:// and
// zks://, memdriver for mem://, an ensemble in memory for tests.
//
// # Guarantees
//
// At most one exclusive holder has a lock at a time. A lock is held only while writes that a
// quorum has committed prove its session alive. A holder that is cut off loses the lock, and its
// contexts end, before ZooKeeper can grant it to the next client.
//
// Processes get a lock in the order of ZooKeeper's queue, and the goroutines of a process in the
// order of their calls. A release wakes one waiter.
//
// Every exclusive holder of a name has a greater [Token] than all holders before it, except after
// a [Client.Break]. A process that is paused between its last look at the lock and its write may
// write late. Only the resource can refuse that write: pass it [Lock.Token], and have it reject
// tokens older than the newest it has seen. Package fence does that.
//
// The documents in docs explain the rest: guarantees.md the assumptions, the
// order among goroutines, tokens, names, znodes and rights; urls.md the keys of
// the URL; operations.md failures and sizing; migrating.md the locks of other
// libraries.
//
// # Acquiring and releasing
//
// The context of Acquire bounds the wait only: cancelling it later releases nothing. A wait that
// the context ends fails with an error that matches the context's error and [ErrNotAcquired], or
// [ErrUnavailable] if there was no usable session; [Acquirer] has the details. A waiter that loses
// its session or its queue node queues again at the end.
//
// [Lock.Done], [Lock.Err] and [Lock.Context] work like those of a context. [Lock.Valid] looks at
// the clock at each call, and [Lock.Verify] asks a quorum. [Lock.Release] waits for the ensemble's
// confirmation, at most for a session timeout, and returns a [*LostError] if the lock was lost
// before.
//
// A context from Do or [Lock.Context] carries its lock. Acquiring the same name with it fails with
// [ErrDeadlock], or joins the lock if [Reenter] is given. Of processes that wait for each other with
// such contexts, one fails with a [*DeadlockError]. [All] acquires several names at once.
//
// # URLs
//
//	scheme://[user[:password]@]host[:port][,host[:port]...][/root][?key=value[&key=value...]]
//
// Without a root in the URL it is /zklock. [Open] rejects unknown keys, repeated keys and bad
// values. No error contains the password. [Config] has the same settings in typed fields: see
// [ParseURL] and [OpenConfig].
package zklock
