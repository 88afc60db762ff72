// Package faultdriver makes the operations of another driver fail, in the ways
// in which those of a distributed system do, and on demand: to see in a unit
// test what becomes of a lock whose request was carried out while the reply to
// it was lost.
//
//	faults := faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply()))
//	client, err := zklock.OpenConnector(faultdriver.Wrap(ensemble.Connector(), faults))
//
// [Wrap] takes an [Injector], which is shown an [Op] before each operation and
// answers with a [Fault]: what goes wrong, and whether the operation is applied
// before, after, or not at all. A Fault is an Injector itself, one that strikes
// every operation; combinators ([On], [Path], [If], [Nth], [First], [After],
// [Any], [All], [Random], [Script]) choose when it does, and [Toggle],
// [Counter] and [Log] switch and observe. All of them print themselves, so that
// a failing test can say what schedule of faults it failed under:
//
//	t.Log(faults)  // first(1, on(multi, lose-reply))
//
// A test that wants to decide not only how but also when each operation goes on
// uses [Control].
//
// # What a fault may and may not do
//
// A fault does to one request what a network and servers can do to it; the
// session as such stays what it is. State, Conn, ID and Timeout are those of
// the session underneath, and without a fault a wrapped driver behaves as the
// driver does: it passes the same conformance suite. To expire sessions or to
// cut connections, use the controls of the ensemble underneath.
//
// A request that its driver did not send, because the session was over or
// there was no connection, was not struck: its error is passed on.
//
// Nothing runs in the background but the requests that are to be applied after
// a while ([LateAfter]) and delayed or lost events; the session's Close waits
// for all of them. Time is that of package time, so all of this works in the
// bubbles of package testing/synctest.
package faultdriver
