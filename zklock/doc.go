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
//	err = zklock.Do(ctx, client.Mutex("orders/42"), func(ctx context.Context) error {
//		lock, _ := zklock.FromContext(ctx)
//		return charge(ctx, lock.Token())
//	})
//
// A [Client] keeps a few sessions with the ensemble and shares them among any
// number of locks. A [Mutex] is only the name of a lock; what acquiring it
// returns is a [Lock]. [Do] puts acquiring and releasing around a function, and
// is what most programs need. Beside the mutex there are [RWMutex], whose
// readers hold together, [Semaphore], and [All], which takes several names as
// one lock. Drivers are chosen by a blank import, as in
// database/sql: zkdriver for zk:// and zks://, memdriver for mem://, an ensemble
// in memory for tests and first steps.
//
// # What is guaranteed
//
// Exclusion. Before ZooKeeper can let anybody else in, the lock of the holder
// before counts as lost: its Done channel is closed and its contexts end. This
// does not rest on the connection. A server that was cut off from its leader
// goes on answering for a while, when the leader has expired the session and
// granted its locks to others. It rests on writes that a quorum has committed:
// a session that has something to lose makes one every tenth of the session
// timeout, and each proves a lease that ends before the session can expire. If
// no proof arrives, the lease runs out, and every lock of the session is lost,
// for good.
//
// Order. Processes get a lock in the order in which ZooKeeper put them into its
// queue, and the goroutines of a process in the order in which they asked. Who
// waits watches the one ahead of it, so a release wakes who is next, and nobody
// else.
//
// Fencing tokens. Every exclusive holder of a name has a greater [Token] than
// all who held it before.
//
// # What is not
//
// No lock can hold back a process that is stopped, by the scheduler, a debugger
// or a frozen machine, between its last look at the lock and its write. The
// lease runs out meanwhile, somebody else gets the lock, and then the process
// goes on and writes. Only the resource can refuse that write: hand it
// [Lock.Token], and let it turn down tokens older than the newest it has seen.
//
// The lease assumes that:
//   - tick_time is at least the tickTime of every server;
//   - all servers of the ensemble have the same maxSessionTimeout;
//   - clocks run within 1% of the same rate, and are not stopped without notice.
//     Suspending the machine is noticed on Linux; a virtual machine that is
//     frozen, copied or moved may stop all its clocks, which is then like a
//     stopped process: fencing covers it;
//   - sessions are not connected to observers that follow another observer.
//
// Where a resource cannot look at tokens, loss_delay gives what a lost holder has
// under way some time to arrive. Its lock then ends that much before the session
// can expire, and what is left of it in the queue is left alone for as long, so
// that between the moment at which the lock stops being valid and the next grant
// at least loss_delay passes, whoever is next. Releases are not delayed, nor is
// Close, which is the program's word that the work is over; [Client.Shutdown]
// waits for it. Not covered are nodes deleted and sessions ended by others, an
// operator with [Client.Break] among them, and what the lease itself assumes.
// The price is a lease that is shorter: a holder out of touch loses its lock
// that much sooner, unless session_timeout is raised by as much.
//
// The locks of one session share its fate. If it expires, all of them are lost;
// pool_max_sessions says over how many sessions a client's names are spread.
//
// # Waiting
//
// The context of Acquire bounds the wait only: cancelling it later releases
// nothing. On any error nothing is held and nothing stays queued. The
// contender's queue node is gone, or is being removed in the background, or its
// session is given up and the node goes with it.
//
// A wait that the context ended fails with an error that matches both the
// context's and [ErrNotAcquired], or [ErrUnavailable] in place of the latter if
// there was no usable session at that moment. connect_timeout bounds
// any stretch without a usable session inside one call. Who loses the session,
// or the queue node, while waiting queues again at the end.
//
// # Holding
//
// [Lock.Done] and [Lock.Err] are to a lock what the methods of these names are
// to a context. [Lock.Context] makes a context that ends with the lock, with
// the reason as its cause. [Lock.Valid] looks at the clock each time it is
// called, and [Lock.Verify] asks a quorum.
//
// # Releasing
//
// [Lock.Release] waits for the ensemble's confirmation until its context ends,
// a session timeout at most. After that it returns [ErrReleasePending] and goes
// on in the background until the queue node is gone, or its session is. It returns
// [ErrReleasePending] as well when the session ends before the confirmation. It
// returns a [*LostError] if the lock was lost before, and [ErrReleased] if it
// was called before.
//
// Do releases the lock when its function has returned or panicked, on a context
// of its own that the caller's end does not touch. If the lock was lost while
// the function ran, the error matches [ErrLost], whatever the function returned.
// A release that is still pending is logged, and no error of Do.
//
// # Inside one process
//
// Goroutines of one client that want the same name queue in memory, behind one
// node in ZooKeeper's queue. A release passes the node to the next of them
// without any request, for handover_time after the process got in; and, as soon
// as somebody else may be in ZooKeeper's queue, handover_limit times at most.
// Then the node is given up and a new one taken at the end of the queue, in one
// round trip. So other processes wait no longer than that.
//
// Readers of one process share a node for handover_time after they got in, until
// a writer waits in the same process. This is the one way in which a reader can
// get in before a writer that queued earlier, in another process. A node that was
// passed from a writer to readers may go back to writers, so to other processes it
// is a writer's until handover_time has passed: their readers wait until then, and
// a try of theirs fails.
//
// [WithoutHandover] gives an acquisition a node of its own. [All] and semaphores
// take no part in this.
//
// # Acquiring while holding
//
// Waiting for a lock that one holds would never end. A context that came from
// Do or [Lock.Context] carries its lock, and acquiring the same name with it
// fails at once with [ErrDeadlock], or joins the lock if [Reenter] is given. A
// joined lock goes back when the last handle on it is released. Goroutines that
// are to take locks by themselves run on [Detach] of its context, which still ends
// with the lock; those that outlive it on Detach(context.WithoutCancel(ctx)).
//
// Acquiring another name while holding one is allowed. Two processes that do so
// in opposite order wait for each other until their contexts end. [All] takes
// several names at once, and can be given them in any order.
//
// A writer can become a reader without a gap, with [Lock.Downgrade]. There is no
// way back.
//
// # Tokens
//
// A token's Zxid is the id of the ZooKeeper transaction that created the queue
// node. It grows over the whole ensemble and is never used twice, unlike the
// sequence numbers in node names, which start again when a lock's znode was
// removed and made anew. An ensemble that was restored from an older snapshot
// would repeat them: a client that sees that happen fails with
// [ErrTokenRegression]. A token's Turn counts the holders that shared one queue
// node. Readers that share a node share its token; a reader's token is greater
// than that of every writer before it, and less than that of every writer after.
// For [All] there is one token, for all its names.
//
// For data in ZooKeeper itself there is [Lock.Txn]: a transaction that is applied
// only while the lock is held.
//
// # Operators
//
// [Client.Contenders] tells who holds a name and who waits for it, and
// [Client.Break] takes one of them out of the queue. [Client.Stats] counts.
//
// # Names
//
// A name is UTF-8 of 1 to 512 bytes in the form of a relative path: no segment
// between slashes is empty, "." or "..", and there are no control characters.
// Anything else is [ErrInvalidName] when the lock is acquired.
//
// Every name has one znode directly below the root. "/" and all bytes but
// letters, digits, "_", "." and "-" are written as %XX there: the lock orders/42
// is /zklock/orders%2F42. [Mutex.Path] tells. So no lock is below another, and
// no name gets out of the root.
//
// # Znodes
//
// The root is made if it is missing, and never removed. A lock's znode is made
// as a container when the lock is first used. The client that made it removes it
// when it has been idle for some ten seconds; otherwise the servers do, some time
// after the last contender has left. A znode that zklock made is zklock's: what
// another program writes into it later is written over. A znode that another program
// made, with data of its own, serves the lock and is never written; SECURITY.md has
// the details. Queue nodes are ephemeral. Who can read them can see what
// [WithLabel] and [WithIdentity] put there.
//
// # Rights
//
// On the root a client needs READ and CREATE, on a lock's znode READ, CREATE and
// DELETE, on queue nodes READ. It does better with DELETE on the root, to remove
// idle znodes of locks, and with WRITE on a lock's, to queue in one round trip.
// [Client.Ping] says which of these is missing where, and SECURITY.md what access
// lists there are.
//
// # Other libraries
//
// By default queue nodes are named as those of Curator's
// InterProcessReadWriteLock, and exclude them. The URL key dialect names them in
// the terms of another recipe instead, one for all clients that share a lock:
//
//	                                       dialect=
//	beside                                 zklock     curator    zk         kazoo
//	Curator's InterProcessReadWriteLock    excludes   conflict   conflict   conflict
//	Curator's InterProcessMutex            conflict   excludes   excludes   conflict
//	go-zookeeper's Lock                    conflict   excludes   excludes   conflict
//	kazoo's Lock, ReadLock and WriteLock   conflict   conflict   conflict   excludes
//
// Where it says conflict, acquiring fails with [ErrConflict] when such a
// contender is in the queue. The other way round there is nobody to refuse: the
// foreign recipe does not see our nodes, and gets in beside a holder of ours.
//
// In the dialects curator and zk there are mutexes only, in kazoo no semaphores;
// in all three a name is a literal path of znodes below the root.
//
// # URLs
//
//	scheme://[user[:password]@]host[:port][,host[:port]...][/root][?key=value[&key=value...]]
//
// The schemes are those of the drivers that the program imports: see zkdriver
// for zk and zks, memdriver for mem. IPv6 addresses are in brackets. Special
// characters in user, password and values are written as %XX. The root is
// /zklock if the URL has none, and cannot be "/". In a URL it has no comma, no &, ;
// or =, and no space in it; [WithRoot] takes such a root.
//
// Open refuses unknown keys, repeated keys and bad values. No error contains
// the password. The keys that every driver takes are these; durations are
// written like 10s or 1500ms:
//
//   - session_timeout (10s): how long ZooKeeper keeps a session that it does not
//     hear from. The servers may grant another one, which then counts. A shorter
//     one is logged as a warning, to slog's default logger without WithLogger. What
//     is held by a process that crashes is free after this time.
//   - tick_time (3s): at least the servers' tickTime. The session timeout, as
//     asked for and as granted, must be three times this or more. Servers that grant
//     a longer session timeout than was asked for show that their ticks are longer
//     than this, so that is an error. Where an operator has raised their
//     minSessionTimeout, ask for that much.
//   - connect_timeout (10s): how long one call puts up with having no usable
//     session, before it fails with [ErrUnavailable].
//   - loss_delay (0): how much time passes, after a lock was lost, before the
//     next one can get it; see above. The session timeout, as asked for and as
//     granted, must be at least this and three times tick_time, and twice this.
//   - pool_max_sessions (2): how many sessions a client has at most.
//   - pool_max_lifetime (0): the age at which a session is replaced; it is
//     closed when its last lock is released. 0 is never.
//   - dialect (zklock): in whose terms queue nodes are named: zklock, curator, zk
//     or kazoo.
//   - handover_limit (16), handover_time (100ms): how often, and for how long
//     after it was granted, a place in ZooKeeper's queue is passed on inside the
//     process. 0 turns that off, and with it the sharing of nodes by readers.
//   - max_waiters (0): how many goroutines of a client may wait for one name.
//     One more fails with [ErrTooManyWaiters] as soon as it is known that it
//     would have to wait: without a request, unless only the ensemble can tell.
//     A try is no waiter. 0 is no limit, here and below.
//   - max_contenders (0): how many contenders a name's queue may have in all,
//     the holder included.
//   - max_names (0): how many names a client may hold and wait for at a time.
//   - create_root (true): whether to make the root if it is missing.
//   - acl (creator with a user in the URL, else open): who may use the znodes
//     that this client makes: creator, those who authenticate as the same user;
//     open, everybody.
package zklock
