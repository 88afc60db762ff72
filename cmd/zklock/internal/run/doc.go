// Package run runs a command under a lock, so that the command is dead before another
// client can have the lock.
//
// Four parts keep that promise, each with one duty:
//
//   - A guard, a small process, leads the command's process group. It exists before the
//     command does. If the wrapper dies without a last word, the guard kills the group. While
//     the guard lives, the kernel gives the group's number to no other group.
//   - The group is what signals go to, and what the wrapper waits for: the command, and all
//     of its descendants that have not left the group.
//   - The timing says when the lease demands a TERM and when a KILL.
//   - The loop in [Run] is the only goroutine that decides. Nothing in it blocks: it makes no
//     request to the ensemble, and messages are written by another goroutine.
//
// The package works on Unix. The death of the wrapper is covered on Linux only as soon as the
// command's first process has ended: see group_other.go.
package run
