// Package drivertest is the conformance suite for drivers of package zklock: it tests the
// rules that the comments of package driver state.
//
// A driver needs one test to run it:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, newHarness)
//	}
//
// newHarness returns a [Harness]: the ensemble that the driver connects to, together with
// operations that no session has, such as to cut a connection or to expire a session. A
// harness can declare that it lacks some of these operations; the subtests that need one
// are then skipped, with that reason. Everything else is required of every driver. The
// suite expects the behaviour of ZooKeeper 3.8.
//
// The suite never sleeps: it waits on channels, or checks a condition again until a
// deadline. So it also runs in the virtual time of package testing/synctest
// ([RunSynctest]), where it takes no wall time at all.
//
// The suite uses the exported names of package driver only, so a driver in another module can run
// it. A minor version may add subtests, which a driver must pass to work with that version.
package drivertest
