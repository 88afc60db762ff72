// Package place implements an entry in ZooKeeper's queue of a name, or of several names
// at once: it creates the queue nodes, waits in the queue, watches the nodes, and
// deletes them.
//
// A Place belongs to one session. Several goroutines may hold it, one after the other.
// The package does not know which goroutine holds a place, nor which one gets it next:
// the Requester turns a granted place into a hold.
package place
