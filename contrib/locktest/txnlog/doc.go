// Package txnlog reads the transaction logs and the snapshots of ZooKeeper servers, versions 3.5 to 3.9. It opens files only,
// and never writes, so it can read those of a server that runs.
//
// A server writes each transaction to its log before it acknowledges it to the leader. So a transaction was committed if
// more than half of the voting servers have it in their logs. The log of one server may have a few more: those that it
// had acknowledged when its leader failed. They were committed if that server led next, and [Committed] finds out. Times are
// those of the leader's wall clock at the time, in milliseconds.
package txnlog
