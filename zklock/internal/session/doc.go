// Package session looks after ZooKeeper sessions: it proves that they are alive, sends
// what is to be written in groups, shares watches, and ends what is held on a session
// together with it. A [Pool] opens sessions and replaces those that have ended.
//
// It knows nothing of queues. What is held on a session is a [Tenant], what a write
// creates is an [Entry].
package session
