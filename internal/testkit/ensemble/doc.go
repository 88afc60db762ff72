// Package ensemble runs one or several real Apache ZooKeeper servers for tests, on free
// ports of 127.0.0.1, with their data in a temporary folder:
//
//	ensemble.Require(t)
//	zk := ensemble.Start(t, ensemble.Config{Servers: 3})
//	client, err := zklock.Open(zk.URL("/locks", nil))
//
// Servers can be killed, stopped, started again and frozen. The links between any two of
// them can be cut, in one direction or both. This needs no privileges: in each server's
// zoo.cfg the quorum and election addresses of its peers are those of proxies that this
// package runs.
//
// The servers come from the unpacked release that $ZOOKEEPER_HOME names. Without it they
// come from Debian's and Ubuntu's package zookeeper.
//
// # Cleanup
//
// Start calls Close at the end of the test. Close kills every server by its process id and
// waits for its end. A test process may die without calling Close, for example by SIGKILL
// or by a timeout's panic. On Linux the servers then die with it: the kernel kills each
// server when the thread that started it ends. That is why a server is started by a
// goroutine that keeps its thread until the server is gone: Go may end any other thread
// while the process lives on. The alternative would be a watchdog that reads a pipe. It
// works on more systems, but it does not watch a server from the moment of its start.
// Other systems than Linux do not have this protection.
package ensemble
