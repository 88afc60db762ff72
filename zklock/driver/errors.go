package driver

import "errors"

// The errors below are what drivers report, wrapped together with the
// client's own error, so that errors.Is finds the meaning and errors.As the
// native one. All but ErrConnLoss are definite: the operation had no effect.
// An error that matches none of them, and no context error, is definite too,
// and means something this package has no name for.

// ErrConnLoss means that the outcome is unknown: the request was applied, or
// was not, or will be applied later. Drivers must return it whenever a request
// may have left the process and no reply to it was read.
var ErrConnLoss = errors.New("connection lost, outcome unknown")

// ErrNotSent means that the request surely never left this process: there was
// no connection to send it on. It is as definite as the errors below.
var ErrNotSent = errors.New("not sent, no connection")

// ErrSessionExpired means that the session is over: the ensemble said so, or
// the driver gave it up. A request in flight when that became known was
// reported as ErrConnLoss.
var ErrSessionExpired = errors.New("session expired")

// ErrClosed means that Close was called on the session or its connector.
var ErrClosed = errors.New("session closed")

// ErrNoNode means that a znode the operation needs does not exist.
var ErrNoNode = errors.New("no node")

// ErrNodeExists means that the znode to create exists already.
var ErrNodeExists = errors.New("node exists")

// ErrNotEmpty means that the znode to delete has children.
var ErrNotEmpty = errors.New("node has children")

// ErrBadVersion means that a znode's version was not the one demanded.
var ErrBadVersion = errors.New("version does not match")

// ErrNoChildrenForEphemerals means that the parent is an ephemeral znode.
var ErrNoChildrenForEphemerals = errors.New("ephemeral node cannot have children")

// ErrNoAuth means that the session lacks a permission.
var ErrNoAuth = errors.New("not authorized")

// ErrAuthFailed means that the server refused the session's credentials.
var ErrAuthFailed = errors.New("authentication failed")

// ErrInvalidACL means that the server refused an access list, for example one
// for the creator by a session without an identity.
var ErrInvalidACL = errors.New("invalid access list")

// ErrBadArguments means that the request is malformed: an invalid path, a
// container inside a transaction.
var ErrBadArguments = errors.New("bad arguments")

// ErrUnimplemented means that the server does not know the operation.
var ErrUnimplemented = errors.New("not implemented by the server")

// ErrTooLarge means that the driver refused a request larger than a server
// accepts (its jute.maxbuffer); the server would have cut the connection.
var ErrTooLarge = errors.New("request too large")

// ErrThrottled means that the server shed the request because of its load.
var ErrThrottled = errors.New("throttled by the server")

// ErrQuotaExceeded means that a quota of the ensemble forbids the change.
var ErrQuotaExceeded = errors.New("quota exceeded")

// ErrRolledBack is the result of the operations of a failed transaction that
// were not at fault.
var ErrRolledBack = errors.New("rolled back with its transaction")

// ErrProtocol means that the peer is no ZooKeeper server: what it said when a
// session was to be made is not ZooKeeper's protocol. Trying again will not
// help; the address is wrong.
var ErrProtocol = errors.New("not the ZooKeeper protocol")

// ErrTLS means that there can be no TLS with the peer as things are: one side
// does not accept the other's certificate or version, or it speaks no TLS.
// Trying again will not help until somebody changes that.
var ErrTLS = errors.New("no TLS with this peer")
