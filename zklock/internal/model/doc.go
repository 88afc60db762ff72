// Package model checks the protocol of locks on ZooKeeper: it explores every state that small
// models of clients, sessions, servers, connections and clocks can reach, and looks for one
// that breaks an invariant.
//
// Where the library decides something by a pure rule, the models call that rule: lease.Lease,
// queue.Decide, place.Standing and place.Sight. So the models and the code cannot drift apart. The
// library does not import this package. README.md describes the models, their bounds, and what they
// leave out.
package model
