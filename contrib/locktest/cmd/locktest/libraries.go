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
		promise: "Its documentation calls it a mutual exclusion lock. It says nothing about loss, and there is no token. " +
			"A name can be stuck as long as a client's session lives: after `Lock` has created its node, it returns each error of `Children` " +
			"(lock.go, line 103) and of `GetW` (line 131) and leaves the node, as does `CreateProtectedEphemeralSequential` if the answer to its " +
			"create is lost and `Children`, by which it looks for the node, fails, too (conn.go, line 1152). `Unlock` " +
			"returns `ErrNotLocked` then, and `Lock` does not say which node it has made. A program can look for it, by data that it gave to `LockWithData`, or close the " +
			"connection, which gives up all its locks. The worker of etcd does close the session of an acquisition that failed, since no other one uses it. [Issue 229](https://github.com/samuel/go-zookeeper/issues/229) of the library's predecessor has described that since 2020.",
		use: "`NewLock`, `Lock` and `Unlock` on one connection, as ZooKeeper's programmer's guide advises and the library's tests do. A hold is lost as soon as the connection " +
			"reports Disconnected or Expired. Where `Lock` returns nil though its session has ended, the lock is given back; `Unlock` is repeated until it has an answer. " +
			"A stuck name has no grants, so its other figures come from fewer.",
	},
	{
		name: "curator", title: "Curator", backend: "zookeeper", version: curatorVersion, build: buildCurator,
		promise: "`InterProcessMutex` promises that at no time two clients think that they hold the same lock, and strongly recommends a listener for the connection. " +
			"[Tech Note 10](https://curator.apache.org/docs/tech-note-10) excepts a pause of the process that is longer than the session's timeout: " +
			"for a short time after it, both clients think so. It calls very low timeouts risky, the default is 60 s; here it is short on purpose. " +
			"ZooKeeper's Java client sleeps for 100 ms before it reports a broken connection (`ClientCnxnSocketNIO.cleanup`), so no program that uses it hears of it sooner. " +
			"Its documentation has no token.",
		use: "One `InterProcessMutex` for each name. A `ConnectionStateListener` watches the connection, as the page \"Shared Reentrant Lock\" recommends " +
			"under \"Error Handling\"; SUSPENDED and LOST end a hold, as Tech Note 14 recommends. A grant and a check also ask `isConnected`. The retry policy is that of " +
			"\"Getting Started\", which is made for long sessions: its first retry comes after a second. " +
			"The JVM has 192 MB, SerialGC, and only the compiler that starts fast and makes slower code (C1), so that several fit onto a small machine.",
	},
	{
		name: "kazoo", title: "kazoo", backend: "zookeeper", version: kazooVersion, build: buildKazoo,
		promise: "`kazoo.recipe.lock.Lock` promises an exclusive lock. Its documentation recommends a listener for SUSPENDED, in which a lock is not to be relied on, " +
			"and LOST, after which it is gone. It documents no token.",
		use: "A `Lock` for each acquisition, and a listener, as the documentation of `kazoo.recipe.lock` says under \"Error Handling\". SUSPENDED ends a hold " +
			"for good, which is stricter than \"Understanding Kazoo States\" of \"Basic Usage\": there, a client pauses until the state is CONNECTED or LOST. So a loss may be one " +
			"that the lock has survived. Retry policies are the defaults.",
	},
	{
		name: "etcd", title: "etcd concurrency", backend: "etcd", goes: true, tokens: true, version: module("go.etcd.io/etcd/client/v3"), build: buildGo,
		promise: "`concurrency.Mutex` is a lock on a lease. etcd says itself, in \"Notes on the usage of lock and lease\", that a lease alone excludes nothing " +
			"for certain, and that what the lock protects has to validate a revision: so the columns after fencing are those of its promise. For keys of etcd, a transaction with " +
			"`Mutex.IsOwner` does that. Its client counts the TTL from when it has read the answer to a heartbeat (lease.go, line 543) and looks at that once a second (line 562), so " +
			"it may believe in a lease for as long as the answer took and a second more. The servers look for leases that have ended twice a second.",
		use: "A `Session` for each acquisition that is under way, with the TTL; `Session.Done` is the loss, and the revision of `Mutex.Header` the token, " +
			"as that page says of fencing tokens. Contexts have `WithRequireLeader`. A TTL of 2 s is the least that servers grant by default; " +
			"these have `--heartbeat-interval 50 --election-timeout 500`, as ZooKeeper's have a short tick.",
	},
	{
		name: "redsync", title: "redsync", backend: "redis", goes: true, version: module("github.com/go-redsync/redsync/v4"), build: buildGo,
		promise: "It implements Redlock, which its README calls a proposal without a formal analysis. Redlock excludes for a time, if clocks run at about " +
			"the same speed and servers that restart have forgotten nothing, or stay away for longer than the TTL. Redis's page \"Distributed Locks with Redis\" says that a shift of a server's " +
			"wall clock can let two clients have the lock, and asks for fencing tokens. Redsync has none.",
		use: "Three independent servers, as many as the other libraries have; the page's examples have five. Each has `appendfsync always`, which that page asks for " +
			"if servers restart at once. Redsync gives up after 32 tries and does not extend a lock by itself: the worker tries until it has the lock, and calls `Extend` " +
			"each third of the TTL, with a limit of an eighth of it, and soon again after a failure. A hold is lost at `Until`, or if `Extend` returns `ErrTaken`. Clients of go-redis have `ContextTimeoutEnabled`, without which redsync's time limit for a server has no effect. `Lock` gives a server " +
			"a twentieth of the TTL, 100 ms here. That is less than the delay of fsync, so no lock is granted during that fault; `WithTimeoutFactor` would change it.",
	},
}
