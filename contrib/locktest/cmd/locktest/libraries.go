package main

// libraries are those with a worker, in the order of the document.
var libraries = []library{
	{
		name: "zklock", title: "zklock", backend: "zookeeper", goes: true, tokens: true, moded: true, version: commit, build: buildGo,
		promise: "A lock has at most one holder as long as clocks that measure time run at about the same speed. `Lock.Valid` says no before " +
			"ZooKeeper ends the session. Tokens rise with each grant, so that a resource can refuse a holder that is late ([guarantees](guarantees.md)).",
		use: "`Mutex(name).Acquire`; work asks `Lock.Valid` before it writes, and takes `Lock.Done` as the loss, as README.md and docs/guarantees.md say.",
	},
	{
		name: "zk", title: "zk.Lock", backend: "zookeeper", goes: true, version: module("github.com/go-zookeeper/zk"), build: buildGo,
		promise: "Its documentation promises an exclusive lock, with a node for each waiter. It has no word about loss, and no token.",
		use: "`NewLock`, `Lock` and `Unlock` on one connection. A hold is lost as soon as the connection reports Disconnected or Expired, as ZooKeeper's " +
			"programmer's guide asks of a program with ephemeral nodes.",
	},
	{
		name: "curator", title: "Curator", backend: "zookeeper", version: curatorVersion, build: buildCurator,
		promise: "`InterProcessMutex` promises that at no time two clients think that they hold the same lock, if a listener watches the connection. It has no token.",
		use: "One `InterProcessMutex` for each name, and a `ConnectionStateListener` for which SUSPENDED and LOST end a hold, as the page " +
			"\"Shared Reentrant Lock\" recommends under \"Error Handling\". The retry policy is that of \"Getting Started\".",
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
			"for certain, and that what the lock protects has to validate a revision.",
		use: "A `Session` for each acquisition at a time, with the TTL; `Session.Done` is the loss, and the revision of `Mutex.Header` the token, " +
			"as that page and contrib/lock of etcd recommend.",
	},
	{
		name: "redsync", title: "redsync", backend: "redis", goes: true, version: module("github.com/go-redsync/redsync/v4"), build: buildGo,
		promise: "It implements Redlock, which its README calls a proposal without a formal analysis. Redlock excludes for a time, if clocks run at about " +
			"the same speed and servers that restart have forgotten nothing. It has no token.",
		use: "Three independent servers, each with `appendfsync always`, as Redis's page \"Distributed Locks with Redis\" asks. The worker calls `Extend` each third of " +
			"the TTL, and a hold is lost at `Until`.",
	},
}
