// Package local has what the goroutines of this process do with a name: they queue behind one entry
// of ZooKeeper's queue, pass it on, share it as readers, and keep it between two uses.
//
// A Queue is the local queue of one name, and Queues has those of a client. A Request is one
// acquisition. It is granted a Hold, which is a place in ZooKeeper's queue until its release or
// loss. Package place makes and watches that entry; kept.go says what keeps it when no goroutine uses
// it, and what ends that.
//
// The package knows neither locks nor hooks. It calls the Caller of a request about that request, and a
// Handle about one caller's part of a hold.
package local
