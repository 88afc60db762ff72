// Package faultdriver wraps another driver and makes its operations fail on demand, as a
// network and servers make them fail. With it a unit test can check, for example, what happens
// to a lock whose request was executed while the reply was lost.
//
//	faults := faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply()))
//	client, err := zklock.OpenConnector(faultdriver.Wrap(ensemble.Connector(), faults))
//
// [Wrap] takes an [Injector]. Before each operation the injector gets an [Op], which
// describes the operation, and returns a [Fault]: what goes wrong, and whether the operation
// is applied before that, later, or not at all. A fault strikes an operation if it is
// returned for it and is not [None].
//
// A Fault is itself an Injector, one that strikes every operation. Combinators choose which
// operations it strikes: [On], [Path], [If], [Nth], [First], [After], [Any],
// [Random], [Script]. [Toggle] switches an injector on and off; [Counter] and [Log] record
// what it does. All of them have a String method, so that a failing test can print its
// schedule of faults:
//
//	t.Log(faults)  // first(1, on(multi, lose-reply))
//
// # Limits of faults
//
// A fault does to one request what a network and servers can do to it. It does not change
// the session: State, Conn, ID and Timeout are those of the wrapped session. A driver that
// is wrapped without faults behaves as before, and passes the same conformance suite. To
// expire sessions or to cut connections, use the controls of the ensemble underneath.
//
// If the wrapped driver did not send a request, because the session was over or had no
// connection, the fault has no effect: the wrapped driver's error is returned.
//
// Only two things run in the background: requests that are applied after a while
// ([LateAfter]), and delayed or lost events. The session's Close waits for all of them.
// Times are those of package time, so all of this works in the bubbles of package
// testing/synctest.
//
// # What is stable
//
// The exported names, and what their comments say, change as those of package zklock do: in a major
// version only. Not stable are the texts that String returns, and which operations [Random] strikes
// for a seed: a seed repeats a run with the same version of the module only. Nor is it stable which
// operations a lock needs: a later version of package zklock may need fewer, or others. So a test
// should choose operations by [On] and [Path], not by their number.
package faultdriver
