// Package driver defines what package zklock needs from a ZooKeeper client. Authors of
// drivers implement its interfaces; the comments on them are the contract.
//
// Application code imports package zklock and, for its side effect, a driver:
//
//	application -> zklock (concrete types) -> driver (interfaces) <- zkdriver, memdriver, ...
//
// A driver provides the operations of one ZooKeeper session and nothing more. It
// reconnects the session, but it never repeats an operation, and it never interprets an
// outcome: it reports what the server answered, or that no answer came. Everything that
// makes a lock out of these operations is written once, in package zklock: ordering,
// leases, clean-up, and finding out what happened to a request whose reply was lost.
// Retries at two layers would multiply, and would hide that an outcome is unknown.
//
// The rules that a driver author must know:
//
//   - A [Session] is one ZooKeeper session. A driver never replaces it with another one.
//   - Every error matches the one error of this package that says what the caller may
//     conclude; see [ErrConnLoss] for the most important one.
//   - [Session].Conn dates the handshake before it is sent, and counts connections.
//     Package zklock computes from both for how long a lock is certainly held.
//
// The conformance suite in package drivertest checks these rules. Every driver must pass it.
package driver
