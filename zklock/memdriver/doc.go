// Package memdriver is a ZooKeeper ensemble in memory, and the zklock driver for it
// under the scheme mem://.
//
// It models a real ensemble and is not just a map with a mutex. Each server has
// applied its own prefix of one transaction log. Only the leader decides that a
// session expires, from what its followers report in their answers to its pings. A
// follower goes on answering for a while after it lost its leader. A leader may not
// know yet that it was deposed. Connections can fall silent. A few lines of code produce,
// without waiting, whatever a lock on ZooKeeper must survive:
//
//	synctest.Test(t, func(t *testing.T) {
//		ensemble := memdriver.New(memdriver.WithServers(3))
//		defer ensemble.Close()
//		client, err := zklock.OpenConnector(ensemble.Connector())
//		...
//		ensemble.Partition(memdriver.AroundServer(1))
//	})
//
// [Ensemble.ExpireAll] ends sessions as a real ensemble does: their clients have lost their
// locks by then. After [Ensemble.KillSession], an operator's command, they have not.
//
// [Ensemble.Freeze] stops a client as SIGSTOP stops a process.
//
// The package takes all time from package time, waits only on channels, and runs nothing while
// no session is open. So an ensemble works inside testing/synctest bubbles, where hours take
// milliseconds.
//
// The URL mem://name means the ensemble that the whole process shares under that name
// ([Named]); mem:// means a private one. A user and a password in the URL are the
// sessions' digest identity. That works with GODEBUG=fips140=only, too, from Go 1.26 on; with Go 1.25
// it is an error.
//
// The model leaves out observers, read-only servers, local sessions, quotas and
// time-to-live znodes.
//
// # What is stable
//
// The exported names, and what their comments say, change as those of package zklock do: in a major
// version only. The same holds for what package drivertest checks. Not stable are the text of
// [Ensemble.Dump], of errors and of log lines, the numbers of sessions, zxids and znodes, which
// server a client connects to, and the order of what happens at the same instant. A later version
// may leave less of ZooKeeper out.
package memdriver
