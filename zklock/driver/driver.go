package driver

import (
	"context"
	"time"
)

// Driver makes connectors from URLs. Drivers are registered with
// zklock.Register under a URL scheme and chosen by a blank import, as in
// database/sql. A Driver must be safe for concurrent use.
type Driver interface {
	// OpenConnector checks u and makes a Connector for it. It must do no
	// network I/O, must refuse what it does not understand, and must not let
	// u.Password into any error.
	OpenConnector(u URL) (Connector, error)

	// Keys lists, sorted, the URL query keys this driver understands. Package
	// zklock uses it to refuse unknown keys before OpenConnector is called.
	Keys() []string
}

// Connector opens sessions with one ensemble. It must be safe for concurrent
// use.
type Connector interface {
	// Connect establishes one new session and returns when the ensemble has
	// committed its creation. timeout is what is asked for; the session's
	// Timeout method tells what was granted. ctx bounds the call only; ending
	// it later does not affect the session. On error no session is left
	// behind that this process could still close.
	Connect(ctx context.Context, timeout time.Duration) (Session, error)

	// Diagnoser is for callers of Connect that give up sooner than it does.
	Diagnoser

	// Driver returns the driver the connector belongs to.
	Driver() Driver

	// Close releases what the connector itself holds. Sessions already made
	// live on until they are closed themselves. Closing twice is harmless.
	Close() error
}

// Diagnoser is the part of a [Connector] that says, while a Connect goes on trying,
// what it has met so far: for callers that will not wait for its end.
type Diagnoser interface {
	// Diagnose returns why the calls of Connect that are under way have not
	// succeeded yet, as far as that is known; nil if none is under way, or
	// nothing is known. Of several calls it may report one.
	Diagnose() error
}

// Session is ONE ZooKeeper session: once it has expired or was closed it is
// dead for ever, and a driver must never let a request of one session reach
// the ensemble under another. It may move between servers and connections
// while it lives.
//
// All methods are safe for concurrent use. Requests issued by one goroutine
// one after the other are executed in that order.
//
// Paths are absolute. Every method that takes a ctx honours it while it waits.
// If ctx ends before the request was handed to a connection, the error matches
// ctx.Err() and [ErrNotSent]; if it ends afterwards, the request may still be
// executed, and the error matches ctx.Err() and [ErrConnLoss].
//
// No method changes what it is given: data, operations and access lists may be shared with
// other requests.
//
// On a session that has expired every method fails with [ErrSessionExpired];
// on one that was closed, with [ErrClosed].
type Session interface {
	// Create makes a znode and returns its path, which for a sequential mode
	// ends in the ten-digit suffix chosen by the server.
	Create(ctx context.Context, path string, data []byte, mode Mode, acl []ACL) (string, error)

	// Delete removes a znode if its data version is version, or whatever its
	// version if that is [AnyVersion].
	Delete(ctx context.Context, path string, version int32) error

	// Get reads a znode from the server the session is connected to.
	Get(ctx context.Context, path string) (Node, error)

	// Set replaces a znode's data, if its version is version or version is
	// AnyVersion, and returns the Stat after the change.
	Set(ctx context.Context, path string, data []byte, version int32) (Stat, error)

	// Children lists the names (not paths) of a znode's children, in no
	// particular order, and returns the Stat of the znode itself.
	Children(ctx context.Context, path string) ([]string, Stat, error)

	// Sync returns when the server the session is connected to has caught up
	// with all that was committed when the request reached the leader. It
	// flows through the leader but is not committed by a quorum.
	Sync(ctx context.Context, path string) error

	// Watch reads a znode and arms a one-shot watch on it, atomically, as
	// ZooKeeper's getData with a watch does. The channel receives exactly one
	// Event and is then closed: when the znode is deleted or its data changes,
	// or, with Event.Err set, when the session ends. A missing znode arms
	// nothing and is ErrNoNode. Loss of a connection is no event. The channel
	// is buffered: nobody has to receive from it.
	//
	// Calls on one connection return channels of their own. After a reconnect a
	// driver may return a channel again that it returned for the path on an
	// earlier connection, if that has not fired: a caller that watches its nodes
	// again after each reconnect must not make memory grow. A receiver that finds
	// the channel closed, without an event, knows that another had the event.
	Watch(ctx context.Context, path string) (Node, <-chan Event, error)

	// Multi executes ops as one transaction: all of them, in order, under one
	// zxid, or none. results has one element an op when the outcome is known.
	// On a definite failure err matches the sentinel of the op at fault,
	// whose result holds the same error, and every other result's Err matches
	// [ErrRolledBack]. Container creation is not possible here.
	Multi(ctx context.Context, ops []Op) (results []OpResult, err error)

	// ID is the session's id, unique in the ensemble.
	ID() int64

	// Timeout is the session timeout as negotiated by the newest handshake,
	// which may differ from what was asked for, and from server to server.
	Timeout() time.Duration

	// Conn tells about the newest completed handshake: generation starts at 1
	// and grows by one with each, and handshakeSent is when its request was
	// sent, read before the send. The generation must have grown before any
	// reply that comes over the new connection is delivered, and no reply of
	// an older connection may be delivered afterwards.
	Conn() (generation uint64, handshakeSent time.Time)

	// Server is the address of the server the session is, or was last,
	// connected to; "" if there is none to tell.
	Server() string

	// State returns the session's state and a channel that is closed when the
	// state, or the connection generation, is no longer what it was when this
	// call was made. No change can be missed: look again after it closes.
	State() (State, <-chan struct{})

	// Close ends the session at the ensemble, which removes its ephemeral
	// znodes, waits for the outcome at most until ctx ends, and releases
	// everything the driver holds for it. nil means that the ensemble has
	// confirmed the end or had already expired the session; any other error
	// means that the session's ephemeral znodes may stay until it expires.
	// Only the first call does the work; later ones return its result.
	Close(ctx context.Context) error
}
