// Package memdriver is a ZooKeeper ensemble in memory, and the zklock driver
// for it under the scheme mem://.
//
// It is a model and not a map with a mutex: servers that each have applied
// their own prefix of one transaction log, sessions whose expiry only the
// leader decides, from what its followers' answers to its pings tell it,
// followers that go on answering after they lost their leader, leaders that do
// not know yet that they were deposed, connections that fall silent. What a
// lock on ZooKeeper has to survive can be provoked here in a few lines and in
// no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		ensemble := memdriver.New(memdriver.WithServers(3))
//		defer ensemble.Close()
//		client, err := zklock.OpenConnector(ensemble.Connector())
//		...
//		ensemble.Partition(memdriver.AroundServer(1))
//	})
//
// [Ensemble.Freeze] stops a client as SIGSTOP does, and [WithJournal] tells what
// was really committed, whatever clients were told.
//
// All time comes from package time, waiting is done on channels only, and
// nothing runs while no session is open: so an ensemble works inside
// testing/synctest bubbles, where hours of it take milliseconds.
//
// URLs are mem://name for the ensemble that the whole process shares under
// that name ([Named]), and mem:// for a private one. A user and a password are
// sessions' digest identity.
//
// The model leaves out observers, read-only servers, local sessions, quotas
// and time-to-live znodes.
package memdriver
