// Package locktest judges lock libraries. It starts workers, processes that use a library, lets
// their clients work under locks, breaks workers, servers and the network between them, and writes a
// history, which package judge reads. It imports nothing of any lock library.
//
// A worker is a program that speaks the protocol of package worker. The work that a lock protects is a
// read of a register, a pause and a write; the register is locktest's, and these are not atomic by
// themselves. Before it writes, and during long pauses, the work asks the worker whether it still holds
// the lock. If the library has tokens, the work shows the token to a second register that refuses old
// ones. So the history also says what fencing would have prevented.
//
// Which names are locked, how long work takes, and which fault happens when follow from a seed. What
// processes, servers and the network do in that time does not: a seed repeats its schedule, and not its
// history.
package locktest
