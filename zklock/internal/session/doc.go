// Package session manages ZooKeeper sessions: it proves that they are alive, sends writes in
// groups, shares watches, and ends everything that is held on a session together with the
// session. A [Pool] opens sessions and replaces those that have ended.
//
// It knows nothing of queues. For this package, a use of a session is a [Dependent], and the
// contenders that a write creates are [Newcomers].
//
// Some times here are instants: values of lease.Now, which also counts the time while
// the machine was suspended. Instants are compared only with instants.
package session
