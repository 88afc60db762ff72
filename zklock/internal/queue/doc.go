// Package queue is what is known of a lock's queue without asking anybody: the names
// and the data of queue nodes in every dialect, their order, and who holds.
//
// All of it is pure: it does no I/O, has no state, and is safe for concurrent use.
package queue
