// Package model checks the protocol of locks on ZooKeeper: it explores every state that small
// models of clients, sessions, servers, connections and clocks can reach, and looks for one
// that breaks an invariant.
//
// The models decide nothing themselves that the library decides. They call its pure rules:
// lease.Lease, queue.Decide, place.Standing and place.Sight. So the models and the code cannot
// drift apart. The library does not import this package. README.md describes the models,
// their bounds, and what they leave out.
package model
