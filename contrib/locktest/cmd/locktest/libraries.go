package main

// libraries are those with a worker, in the order of the document.
var libraries = []library{
	{
		name: "zklock", title: "zklock", backend: "zookeeper", goes: true, tokens: true, moded: true, version: commit, build: buildGo,
		promise: "A lock has at most one holder as long as clocks that measure time run at about the same speed. `Lock.Valid` says no before " +
			"ZooKeeper ends the session. Tokens rise with each grant, so that a resource can refuse a holder that is late ([guarantees](guarantees.md)).",
		use: "`Mutex(name).Acquire`; work asks `Lock.Valid` before it writes, and takes `Lock.Done` as the loss, as README.md and docs/guarantees.md say. " +
			"The URL has `tick_time=500ms`, which is that of the servers: zklock would refuse so short a session with servers of the default tick.",
	},
	{
		name: "zk", title: "zk.Lock", backend: "zookeeper", goes: true, version: module("github.com/go-zookeeper/zk"), build: buildGo,
		promise: "Its documentation promises an exclusive lock, with a node for each waiter. It has no word about loss, and no token. " +
			"A name can be stuck as long as a client's session lives: after `Lock` has created its node, it returns each error of `Children` " +
			"(lock.go, line 103) and of `GetW` (line 131) and leaves the node, as does `CreateProtectedEphemeralSequential` if the answer to its " +
			"create is lost and `Children`, by which it looks for the node, fails, too (conn.go, line 1152). The caller cannot delete the node: `Unlock` " +
			"returns `ErrNotLocked`. [Issue 229](https://github.com/samuel/go-zookeeper/issues/229) of the library's predecessor has described that since 2020.",
		use: "`NewLock`, `Lock` and `Unlock` on one connection. A hold is lost as soon as the connection reports Disconnected or Expired, as ZooKeeper's " +
			"programmer's guide asks of a program with ephemeral nodes. A lock that was granted while a session ended is given back.",
	},
	{
		name: "curator", title: "Curator", backend: "zookeeper", version: curatorVersion, build: buildCurator,
		promise: "`InterProcessMutex` promises that at no time two clients think that they hold the same lock, if a listener watches the connection. " +
			"[Tech Note 10](https://curator.apache.org/docs/tech-note-10) excepts a pause of the process that is longer than the session's timeout: " +
			"for a short time after it, both clients think so. It has no token.",
		use: "One `InterProcessMutex` for each name, and a `ConnectionStateListener` for which SUSPENDED and LOST end a hold, as the page " +
			"\"Shared Reentrant Lock\" recommends under \"Error Handling\", and Tech Note 14. A check also asks `isConnected`. The retry policy is that of \"Getting Started\". " +
			"The JVM has 192 MB and only the faster one of its compilers, so that several fit onto a small machine.",
	},
	{
		name: "kazoo", title: "kazoo", backend: "zookeeper", version: kazooVersion, build: buildKazoo,
		promise: "`kazoo.recipe.lock.Lock` promises an exclusive lock. Its documentation recommends a listener, since a lock is gone after LOST. It has no token.",
		use: "A `Lock` for each acquisition, and a listener for which SUSPENDED and LOST end a hold, as the documentation of `kazoo.recipe.lock` says under " +
			"\"Error Handling\", and \"Basic Usage\" under \"Understanding Kazoo States\".",
	},
	{
		name: "etcd", title: "etcd concurrency", backend: "etcd", goes: true, tokens: true, version: module("go.etcd.io/etcd/client/v3"), build: buildGo,
		promise: "`concurrency.Mutex` is a lock on a lease. etcd says itself, in \"Notes on the usage of lock and lease\", that a lease alone excludes nothing " +
			"for certain, and that what the lock protects has to validate a revision. Its client counts the TTL from when it has read the answer to a heartbeat " +
			"(lease.go, line 543) and looks at that once a second (line 562), so it may believe in a lease for a second longer than the servers.",
		use: "A `Session` for each acquisition at a time, with the TTL; `Session.Done` is the loss, and the revision of `Mutex.Header` the token, " +
			"as that page says of fencing tokens. The servers are the distribution's, and older than the client.",
	},
	{
		name: "redsync", title: "redsync", backend: "redis", goes: true, version: module("github.com/go-redsync/redsync/v4"), build: buildGo,
		promise: "It implements Redlock, which its README calls a proposal without a formal analysis. Redlock excludes for a time, if clocks run at about " +
			"the same speed and servers that restart have forgotten nothing. Redis's page \"Distributed Locks with Redis\" says that a shift of a server's " +
			"wall clock can let two clients have the lock, and asks for fencing tokens. It has no token.",
		use: "Three independent servers, each with `appendfsync always`, as that page asks. The worker calls `Extend` each third of the TTL, and a hold is lost at `Until`, " +
			"or if `Extend` returns `ErrTaken`. Clients of go-redis have `ContextTimeoutEnabled`, without which redsync's time limit for a server has no effect.",
	},
}
