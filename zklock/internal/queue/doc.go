// Package queue has the rules of a lock's queue: the names and the data of queue nodes in
// every dialect, the order of the nodes, which of them hold the lock, and which nodes a
// waiter has to watch.
//
// All of it is pure: it does no I/O, has no state, and is safe for concurrent use.
package queue
