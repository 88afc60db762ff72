package driver

import "errors"

// Drivers report the errors below. A driver wraps its client library's error together
// with one of them: errors.Is finds the meaning, and errors.As the library's error. The
// error of a Session's method matches only one of them: a caller could not act on two
// meanings.
//
// All of them but ErrConnLoss are definite: the operation had no effect, and never will.
// An error that matches none of them, and no context error, is definite, too; it means
// something that this package has no name for.

// ErrConnLoss means that the outcome is unknown: the request was applied, or was not, or
// will be applied later. A driver must return it whenever a request may have left the
// process and no reply to it was read. Package zklock then finds out what happened; a
// driver that reports another error, or repeats the request, makes that impossible. A driver
// that gave the connection up, since the server did not answer, adds [os.ErrDeadlineExceeded]:
// a server that cuts a connection may do so since a request is too large for it.
var ErrConnLoss = errors.New("connection lost, outcome unknown")

// ErrNotSent means that the request certainly never left this process, and never will:
// there was no connection to send it on, or the caller's context ended first.
var ErrNotSent = errors.New("not sent, no connection")

// ErrSessionExpired means that the session is over: the ensemble said so, or the driver
// gave the session up. A request that was sent before, and is not answered when this
// becomes known, fails with ErrConnLoss instead.
var ErrSessionExpired = errors.New("session expired")

// ErrClosed means that Close was called before: on the session, or, for Connect, on the
// connector.
var ErrClosed = errors.New("session closed")

// ErrNoNode means that a znode that the operation needs does not exist.
var ErrNoNode = errors.New("no node")

// ErrNodeExists means that the znode to be created exists already.
var ErrNodeExists = errors.New("node exists")

// ErrNotEmpty means that the znode to be deleted has children.
var ErrNotEmpty = errors.New("node has children")

// ErrBadVersion means that a znode's version is not the one that the operation requires.
var ErrBadVersion = errors.New("version does not match")

// ErrNoChildrenForEphemerals means that the parent of the znode to be created is
// ephemeral, and so cannot have children.
var ErrNoChildrenForEphemerals = errors.New("ephemeral node cannot have children")

// ErrNoAuth means that the session lacks a permission that the operation needs.
var ErrNoAuth = errors.New("not authorized")

// ErrAuthFailed means that the server refused the session's credentials.
var ErrAuthFailed = errors.New("authentication failed")

// ErrInvalidACL means that the server refused an access list, for example an empty one, or
// [CreatorACL] from a session without an identity.
var ErrInvalidACL = errors.New("invalid access list")

// ErrBadArguments means that the request is malformed, for example because it has an
// invalid path, or that the driver cannot make it: see [Session].Multi.
var ErrBadArguments = errors.New("bad arguments")

// ErrUnimplemented means that the server does not know the operation.
var ErrUnimplemented = errors.New("not implemented by the server")

// ErrTooLarge means that the driver refused to send a request that is larger than a
// server accepts (its jute.maxbuffer). The server would have cut the connection, and the
// outcome would have looked unknown.
var ErrTooLarge = errors.New("request too large")

// ErrReplyTooLarge means that the reply to a read is larger than the driver reads: a znode
// has too many children for one list.
var ErrReplyTooLarge = errors.New("reply too large")

// ErrLocalSession means that the server refuses ephemeral znodes to sessions that only it
// knows, and does not let them become global: locks cannot work there.
var ErrLocalSession = errors.New("no ephemeral nodes on local sessions: set localSessionsUpgradingEnabled=true on the servers")

// ErrThrottled means that the server did not execute the request, because of its load.
var ErrThrottled = errors.New("throttled by the server")

// ErrQuotaExceeded means that a quota of the ensemble forbids the change.
var ErrQuotaExceeded = errors.New("quota exceeded")

// ErrRolledBack is the result of those operations of a failed transaction that were not at
// fault: they were not applied, because another operation failed.
var ErrRolledBack = errors.New("rolled back with its transaction")

// ErrProtocol means that the peer is not a ZooKeeper server: what it answered to the
// request for a session is not ZooKeeper's protocol. The address is wrong, and trying again
// does not help.
var ErrProtocol = errors.New("not the ZooKeeper protocol")

// ErrTLS means that a TLS connection with the peer is impossible: one side does not accept
// the other's certificate or version, or the peer does not speak TLS. Trying again does not
// help until the configuration of one side is changed.
var ErrTLS = errors.New("no TLS with this peer")
