// Package model checks the rule of the lease: it explores every state that a small model of a
// client, its session, the servers, their connections and clocks can reach, and looks for one in
// which a lease outlives its session. It checks semaphores in the same way. The models call lease.Lease and queue.Decide, so they
// cannot drift apart from those. The library does not import this package. README.md describes the model, its bounds, and
// what it leaves out.
package model
