// Package memcontrol has the controls of memdriver's ensembles that only tests of this project
// need: counts of requests and watches, a journal of what was committed, and faults of single
// servers.
package memcontrol

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Controls are those of one ensemble. They are safe for concurrent use.
type Controls interface {
	// Ops returns the present counts of requests.
	Ops() Ops

	// WatchCount returns how many watches are armed: one for each pair of connection and
	// path, and another one if the connection also watches the path's children.
	WatchCount() int

	// Watched returns how many watches are armed on each path that is watched.
	Watched() map[string]int

	// Servers returns the servers' addresses, as sessions report them.
	Servers() []string

	// Delete removes a znode as an operator with all rights would. It fails if the znode is
	// missing or has children, or if the ensemble has no leader.
	Delete(path string) error

	// SetACL replaces the access list of a znode as an operator with all rights would. An empty one gives no client
	// any right.
	SetACL(path string, acl []driver.ACL) error

	// SetSequence sets the number that the next sequential child of a znode gets. The last
	// number is 2147483647, which a server then assigns again and again.
	SetSequence(path string, next int32) error

	// Lag makes a server apply commits only after d has passed since it learned of them.
	// It goes on answering from its old state. With a d of 0 it catches up at once.
	Lag(server int, d time.Duration)

	// Flush sets how long a server of several needs to bring its log to the disk, before it acknowledges what is in it.
	// What arrives meanwhile waits for the next flush. It goes on answering pings and reads.
	Flush(server int, takes time.Duration)

	// Backup saves what is committed, sessions included. restore stops all servers for as long as
	// down, a second at least, and starts them with what was saved: later transactions are lost, and
	// their ids are assigned again. Servers close the connection of a client that has seen a
	// transaction with a greater id than theirs. restore may be called more than once.
	Backup() (restore func(down time.Duration))

	// MaxTimeout sets the longest session timeout that one server grants, like a
	// maxSessionTimeout that differs between servers; 0 means the usual 20 ticks. It applies
	// from the next handshake on.
	MaxTimeout(server int, d time.Duration)

	// HoldReplies holds up all messages to a session on its present connection until release
	// is called. Its requests are executed, but the answers stay under way. The client waits
	// for them until it gives the connection up as silent. release may be called more than
	// once.
	HoldReplies(sessionID int64) (release func())

	// HoldRequests holds up all messages from a session on its present connection until
	// release is called. They arrive then, late and on the old connection, if the server still
	// listens, even if the client has closed its end.
	HoldRequests(sessionID int64) (release func())

	// Port is for clients that bring a connection of their own.
	Port

	// Journal sets a function that is called with every transaction that changes something,
	// when it is committed and in the order of the log. The ensemble is locked while f runs,
	// so f must not block and must not use the ensemble. Set it before the first session.
	Journal(f func(Transaction))
}

var of func(ensemble any) Controls

// Of returns the controls of a *memdriver.Ensemble.
func Of(ensemble any) Controls { return of(ensemble) }

// Provide sets what Of calls. Package memdriver calls it, since this package cannot import it.
func Provide(f func(ensemble any) Controls) { of = f }

// Ops counts the requests that clients have made to the ensemble's servers, both
// executed and refused ones.
type Ops struct {
	// Creates is the number of single creates.
	Creates int

	// Deletes is the number of single deletes.
	Deletes int

	// Sets is the number of single sets of data.
	Sets int

	// Multis is the number of transactions.
	Multis int

	// MultiOps is the number of operations in all transactions together.
	MultiOps int

	// Gets is the number of reads of a znode without a watch.
	Gets int

	// Watches is the number of reads of a znode that asked for a watch.
	Watches int

	// WatchChildren is the number of lists of children that asked for a watch.
	WatchChildren int

	// WatchExists is the number of questions whether a znode exists. All of them ask for a
	// watch.
	WatchExists int

	// Children is the number of lists of children without a watch.
	Children int

	// Syncs is the number of syncs.
	Syncs int

	// Pings is the number of clients' pings.
	Pings int

	// Events is the number of watch events that were sent to clients.
	Events int
}

// Writes returns how many transactions, single or not, clients have requested.
func (o Ops) Writes() int { return o.Creates + o.Deletes + o.Sets + o.Multis }

// Transaction is an entry of the ensemble's log that a majority has accepted. It
// shows what really happened, whatever replies the clients received.
type Transaction struct {
	// Zxid is its number. Transactions that changed nothing have numbers too, but are
	// not reported.
	Zxid int64

	// At is when it was committed.
	At time.Time

	// Session is the session whose request it was; for the end of a session, the
	// session that ended. It is 0 for the ensemble's operator.
	Session int64

	// Ended means that the session ended: its client closed it, or it expired.
	Ended bool

	// Changes lists the changes to znodes; creations come first.
	Changes []Change
}

// Change is a transaction's change to one znode.
type Change struct {
	// Kind is OpCreate, OpDelete or OpSet.
	Kind driver.OpKind

	// Path is the znode's path, with its sequence suffix.
	Path string

	// Data is its content afterwards; empty for a deletion.
	Data []byte

	// Owner is the session of an ephemeral znode; 0 for others.
	Owner int64
}
