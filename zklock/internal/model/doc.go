// Package model checks the rule of the lease: it explores every state that a small model of a
// client, its session, the servers, their connections and clocks can reach, and looks for one in
// which a lease outlives its session. The model calls lease.Lease itself, so the two cannot drift
// apart. The library does not import this package. README.md describes the model, its bounds, and
// what it leaves out.
package model
