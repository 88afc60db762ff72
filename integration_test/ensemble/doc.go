// Package ensemble runs real Apache ZooKeeper servers for tests, one or
// several, on free ports of 127.0.0.1, with their data in a temporary folder:
//
//	ensemble.Require(t)
//	zk := ensemble.Start(t, ensemble.Config{Servers: 3})
//	client, err := zklock.Open(zk.URL("/locks", nil))
//
// Servers can be killed, stopped, started again and frozen, and the links
// between any two of them can be cut, in one direction or both, without any
// privilege: each server's zoo.cfg knows its peers by the addresses of proxies
// that this package runs, on the quorum and on the election ports.
//
// The servers come from $ZOOKEEPER_HOME, a release unpacked, or else from
// Debian's and Ubuntu's package zookeeper.
//
// # Nothing is left behind
//
// Close, which Start arranges for, kills every server by its process id and
// waits for its end. A test process that dies without it (a timeout's panic,
// SIGKILL) takes the servers along on Linux: the kernel is asked to kill each
// of them when the thread that started it ends. That is why a server is started
// by a goroutine that keeps its thread to itself until the server is gone: Go
// may end any other thread while the process lives on. The alternative, a
// watchdog that reads a pipe, works on more systems but leaves a moment between
// the start of a server and its being watched. On other systems there is no
// such protection.
package ensemble
