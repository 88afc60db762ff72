// Package drivertest is the conformance suite for drivers of package zklock:
// it says in tests what package driver says in words.
//
// A driver's wiring is one test:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, newHarness)
//	}
//
// where newHarness returns a [Harness]: the ensemble the driver talks to, with
// the powers over it that no session has (cutting a connection, expiring a
// session). What an ensemble can not be made to do is a capability that the
// harness declares, and the subtests that need it are skipped saying so;
// everything else is required of every driver. ZooKeeper 3.8 is the judge of
// what is expected here.
//
// The suite never sleeps: it waits on channels, or looks again until a
// deadline. So it runs in the virtual time of package testing/synctest as well
// ([RunSynctest]), where it takes no wall time at all.
package drivertest
