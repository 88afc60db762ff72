// Package driver defines what package zklock needs from a ZooKeeper client.
//
// Application code imports package zklock and, for its side effect, a driver:
//
//	application -> zklock (concrete types) -> driver (interfaces) <- zkdriver, memdriver, ...
//
// A driver is dumb on purpose. Its primitives are those of one ZooKeeper
// session; it never retries an operation and never interprets an outcome.
// Everything that makes a lock out of these primitives (recovery of unknown
// outcomes, ordering, leases, clean-up) is written once, in package zklock.
//
// The conformance suite in package drivertest says in tests what this package
// says in words; every driver has to pass it.
package driver
