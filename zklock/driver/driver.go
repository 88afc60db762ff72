package driver

import (
	"context"
	"time"
)

// Driver makes connectors from URLs. A driver package registers its Driver with
// zklock.Register under a URL scheme, and an application chooses it by a blank import, as
// with database/sql. A Driver must be safe for concurrent use.
type Driver interface {
	// OpenConnector checks u and makes a Connector for it. It must do no network I/O, and
	// must return an error for everything in u that it does not understand. No error may
	// contain u.Password.
	OpenConnector(u URL) (Connector, error)

	// Keys returns the URL query keys that this driver understands, sorted. Package
	// zklock refuses all other keys before it calls OpenConnector.
	Keys() []string
}

// Connector opens sessions with one ensemble. It must be safe for concurrent use.
type Connector interface {
	// Connect establishes one new session, and returns when the ensemble has committed
	// its creation. It asks for timeout as the session timeout; the session's Timeout
	// method returns what the ensemble granted. ctx bounds only this call: when it ends
	// later, the session goes on.
	//
	// If Connect fails, it leaves no session behind that this process could still close:
	// the driver closes a session that was created for the call. A session whose creation
	// never became known to this process expires at the ensemble.
	//
	// If ctx ends first, the error matches ctx.Err(). After Close, it matches [ErrClosed].
	// [ErrAuthFailed], [ErrInvalidACL], [ErrBadArguments], [ErrProtocol], [ErrTLS] and
	// ErrClosed mean that trying again does not help. After other errors package zklock repeats
	// Connect.
	Connect(ctx context.Context, timeout time.Duration) (Session, error)

	// Diagnoser explains why a call of Connect has not returned yet.
	Diagnoser

	// Driver returns the driver that the connector belongs to. It is not nil.
	Driver() Driver

	// Close releases what the connector itself holds. Sessions that it has opened go on
	// until they are closed themselves. Closing again does nothing and returns nil.
	Close() error
}

// Diagnoser is the part of a [Connector] that explains why a call of Connect which is
// still trying has not succeeded, or why a session has no connection. It is for callers that stop
// waiting: they can put the reason into their own error.
type Diagnoser interface {
	// Diagnose returns why the calls of Connect that are under way have not succeeded
	// yet. If no call is under way, it may return why a session that Connect has opened has no
	// connection or, if no session lives, why the last call failed. It returns nil if there is none of
	// these, or if no reason is known. If there are several, it may report on any one of them.
	Diagnose() error
}

// Session is one ZooKeeper session. Once it has expired or was closed, it stays so. While
// it lives, it may move between servers and connections.
//
// A driver must never let a request of one session reach the ensemble under another
// session. A lock belongs to one session and is lost with it: a request that was made for
// the lock must not be executed after that, on behalf of another session.
//
// All methods are safe for concurrent use. Requests that one goroutine makes one after the
// other are executed in that order.
//
// No reply shows an older state of the ensemble than a reply before it has shown to the session, on
// whichever connections they come. So a driver sends each server, when it reconnects, the newest
// transaction that a reply has shown, and no server that lags behind that takes the session over.
//
// Paths are absolute. A request with a malformed path fails with [ErrBadArguments].
//
// A request that is made while the session has no connection waits for the next one. A
// request whose connection is lost is not repeated: if it may have been sent, it fails
// with [ErrConnLoss].
//
// Every method with a ctx returns when ctx ends. If ctx ended before the request was given
// to a connection, the request must never be sent, and the error matches ctx.Err() and
// [ErrNotSent]. If ctx ended later, the ensemble may still execute the request, and the
// error matches ctx.Err() and ErrConnLoss.
//
// No method changes its arguments: data, operations and access lists may be shared with
// other requests.
//
// On a session that has expired, every request fails with [ErrSessionExpired]. On a
// session that was closed, every request fails with [ErrClosed]. A request that waits for
// a connection when the session ends fails in the same way.
type Session interface {
	// Create makes a znode and returns its path. For a sequential mode the path ends in
	// the ten-digit suffix that the server chose.
	//
	// Errors: [ErrNodeExists]; [ErrNoNode] if the parent does not exist;
	// [ErrNoChildrenForEphemerals]; [ErrNoAuth]; [ErrInvalidACL], also for an empty list;
	// [ErrTooLarge]; [ErrUnimplemented] for a container on a server without containers.
	Create(ctx context.Context, path string, data []byte, mode Mode, acl []ACL) (string, error)

	// Delete removes a znode if its data version is version. With [AnyVersion] it removes
	// the znode whatever its version is.
	//
	// Errors: [ErrNoNode], [ErrBadVersion], [ErrNotEmpty]; [ErrNoAuth], if the parent's access
	// list does not allow it.
	Delete(ctx context.Context, path string, version int32) error

	// Get reads a znode from the server that the session is connected to. That server has
	// all changes of this session, but may lag behind those of others: see Sync.
	//
	// Errors: [ErrNoNode], [ErrNoAuth].
	Get(ctx context.Context, path string) (Node, error)

	// Set replaces a znode's data if its data version is version, or if version is
	// [AnyVersion]. It returns the znode's Stat right after the change.
	//
	// Errors: [ErrNoNode], [ErrBadVersion], [ErrNoAuth], [ErrTooLarge].
	Set(ctx context.Context, path string, data []byte, version int32) (Stat, error)

	// Children returns the names (not the paths) of a znode's children, in no particular
	// order, and the Stat of the znode itself. It may lag as Get does.
	//
	// Errors: [ErrNoNode], [ErrNoAuth], [ErrReplyTooLarge].
	Children(ctx context.Context, path string) ([]string, Stat, error)

	// Sync returns when the server that the session is connected to has applied
	// everything that was committed when the request reached the leader. A quorum does
	// not commit a Sync: a leader that has been replaced may still answer it.
	Sync(ctx context.Context, path string) error

	// Watch reads a znode and arms a one-shot watch on it in one atomic step, as
	// ZooKeeper's getData with a watch does. A change that the read does not show is
	// therefore always reported as an event. The watch outlives ctx.
	//
	// The channel receives exactly one Event and is then closed. The event reports that the
	// znode was deleted, that its data was set, or, with Event.Err set, that the session has
	// ended. The loss of a connection is not an event: the driver sets the watch again on the
	// next connection, and a change that was made in between fires it. The channel is buffered,
	// so that the event does not need a receiver.
	//
	// Each call on one connection returns a channel of its own. After a reconnect a driver
	// may return a channel again that it returned for the same path on an earlier
	// connection and that has not fired. ZooKeeper's clients cannot take a watch back, so
	// a caller that watches its nodes again after each reconnect would otherwise make
	// memory grow. A receiver that finds the channel closed, without an event, knows that
	// another receiver got the event.
	//
	// An event is in its channel, and the channel is closed, before any method of this session returns a
	// reply, and before any channel has an event, that the server sent after it. A server sends the event of a change before
	// what follows from any later transaction. So a caller that gets the result of a transaction, or the
	// event of one, and finds no event of another znode, knows that this one had not changed before that,
	// since its watch was armed on this connection. After a reconnect, what was missed comes in any order.
	//
	// Errors: as Get. An error arms nothing; ignore the channel then.
	Watch(ctx context.Context, path string) (Node, <-chan Event, error)

	// WatchChildren lists a znode's children as Children does, and arms a one-shot watch on
	// the list in the same atomic step, as ZooKeeper's getChildren with a watch does. Its event
	// reports that a child was created or deleted ([EventChildren]), that the znode was
	// deleted, or that the session has ended. A change of the znode's data is not an event, and
	// neither is a change of a child's own children.
	//
	// In everything else the watch and its channel are as Watch describes. A znode may have
	// watches of all three methods at once; they fire independently.
	//
	// Errors: as Children. An error arms nothing.
	WatchChildren(ctx context.Context, path string) ([]string, Stat, <-chan Event, error)

	// WatchExists reports whether a znode exists, returns its Stat if it does, and arms a
	// one-shot watch in the same atomic step, as ZooKeeper's exists with a watch does. If the
	// znode is missing, the event reports its creation ([EventCreated]). If it is there, the
	// event is that of Watch. A znode that is created and deleted again while the session has
	// no connection is not an event.
	//
	// In everything else the watch and its channel are as Watch describes. A channel that
	// is returned again may come from an earlier call of Watch for the same path. A session
	// that may not read the znode gets an answer from older servers only, and no event from
	// some servers.
	//
	// Errors: those that every request can have, and ErrNoAuth for a znode that is there.
	// A missing znode is not an error.
	WatchExists(ctx context.Context, path string) (Stat, bool, <-chan Event, error)

	// Multi executes ops as one transaction: all of them in order, under one zxid, or none
	// of them.
	//
	// If the transaction was applied, or the ensemble refused one of its operations,
	// results has one element for each op, in the same order. In the second case nothing
	// was applied: err matches the error of the operation at fault, whose result has the
	// same error, and the Err of every other result matches [ErrRolledBack].
	//
	// results is empty if the request was not sent or if its outcome is unknown. If the
	// driver itself refuses ops, for example as malformed, it may return results or not.
	// Package zklock takes results as known only if there is one for each op.
	//
	// A container can be created here if the driver and the server can do it. The znode is
	// then the same as one that Create makes. If the driver cannot, it sends nothing and
	// returns [ErrBadArguments]. If the server cannot, the operation is refused with
	// [ErrUnimplemented].
	//
	// A driver may send a single create, delete or set as the plain request for it, which
	// has the same effect as a transaction of one operation and costs the servers less.
	Multi(ctx context.Context, ops []Op) (results []OpResult, err error)

	// ID returns the session's id, which is unique in the ensemble and not 0. It does not
	// change when the session ends.
	ID() int64

	// Timeout returns the session timeout that the newest handshake has negotiated. It may
	// differ from the timeout that was asked for, and from one server to the next. It is
	// not forgotten when the session ends.
	Timeout() time.Duration

	// Conn describes the newest completed handshake. generation is 1 after the first
	// handshake and grows by one with each reconnect. handshakeSent is when the driver sent the
	// handshake's request; the driver must read the clock before it sends.
	//
	// Package zklock computes from handshakeSent for how long the session is certainly
	// alive: a later time would make a lock seem held for too long. It also reads generation
	// before and after a request, to know which connection answered it. Therefore the driver
	// must increase generation before it returns any reply, or sends any event, of the new connection,
	// and must do neither for an older connection afterwards.
	Conn() (generation uint64, handshakeSent time.Time)

	// Server returns the address of the server that the session is connected to, or was
	// connected to last. It is "" if the driver does not know one. Package zklock shows it
	// in hooks and does not decide by it.
	Server() string

	// State returns the session's state, and a channel that is closed when the state or
	// the connection generation has changed since this call. A caller that calls State
	// again each time the channel closes misses no change.
	State() (State, <-chan struct{})

	// Close ends the session at the ensemble, which removes its ephemeral znodes. It waits
	// for the ensemble's answer, but not longer than until ctx ends. When it returns, it
	// has released everything that the driver holds for the session.
	//
	// Requests that were not sent yet fail with [ErrClosed]; requests that were sent and
	// are not answered in time fail with [ErrConnLoss]. All watches end.
	//
	// nil means that the ensemble has confirmed the end, or had already expired the
	// session. Any error means that the session's ephemeral znodes may stay until it
	// expires. Only the first call ends the session; later calls wait for that, whatever
	// their own contexts are, and return its result.
	Close(ctx context.Context) error
}
