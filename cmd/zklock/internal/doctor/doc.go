// Package doctor examines an ensemble for locks: whether its servers can be reached, how they
// are configured, and what is in the queues. It writes nothing, except sessions that it opens
// and closes, and the transaction of [zklock.Client.Ping], which is never applied.
package doctor
