// Package run runs a command under a lock, so that the command is dead before another client can
// have the lock. The process that calls [Run] is the wrapper.
//
// Five parts keep that promise, each with one duty:
//
//   - A guard, a small process, leads the command's process group. It exists before the
//     command does. If the wrapper dies without a last word, the guard kills the group. Until
//     the wrapper collects the guard, the kernel gives the group's number to no other group.
//   - A closer, another small process, is outside of the group. If the wrapper dies, the closer
//     waits until the group is empty, and ends the wrapper's sessions then. It has their
//     files open, as the guard does. So their flocks show others that they are still in use.
//     Both may be started while the lock is acquired, and get the files when it is: see [Helpers].
//   - The group is what signals go to, and what the wrapper waits for: the command, and all
//     of its descendants that have not left the group. If the command's first process leads a group
//     of its own, as coreutils timeout does, the wrapper treats that group in the same way.
//   - The timing says when the lease demands a TERM and when a KILL.
//   - The loop in [Run] is the only goroutine that decides. Nothing in it blocks: it makes no
//     request to the ensemble, and other goroutines write messages and start another guard
//     or closer in place of one that was killed.
//
// The package works on Unix. On systems other than Linux the guard must end when the command's
// first process has ended. From then on, nothing kills the group if the wrapper dies. The wrapper does
// not wait there for a group that the first process leads.
package run
