package drivertest

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Harness is one ensemble, together with the means to disturb it. Each subtest gets a
// harness. Several harnesses may share an ensemble, since each subtest works under a path of
// its own. Methods that take a session get one of a connector of this harness. The value may be
// a wrapper: identify the session by its ID.
type Harness interface {
	// Connector makes a connector whose sessions have no identity. The suite calls it for
	// most of the sessions that it opens, and closes the connector.
	Connector() driver.Connector

	// Authenticated makes a connector whose sessions have an identity, which is the same at
	// each call. ok is false if the driver cannot give them one; the subtests on access
	// lists that need it are then skipped.
	Authenticated() (c driver.Connector, ok bool)

	// Timeout returns the session timeout that the suite asks for in tests that call
	// Expire. It should be short, so that a real server expires a session soon, and long
	// enough that a slow machine can keep such a session alive for a moment. The ensemble
	// must grant exactly this timeout.
	Timeout() time.Duration

	// Limits returns the shortest and the longest session timeout that the ensemble
	// grants. The suite asks for the longest for sessions that it does not expire.
	Limits() (shortest, longest time.Duration)

	// Expire makes the ensemble expire s, which has asked for Timeout. It returns when the
	// session's ephemeral znodes are gone. The driver may notice the expiry later, but
	// without further help from the harness.
	Expire(ctx context.Context, s driver.Session) error

	// Kill breaks the connection of s once; requests and replies in flight on it are
	// lost. A new connection can be made at once.
	Kill(s driver.Session)

	// Cut breaks the connection of s, and lets no new one be made until heal is called.
	// The session expires only if it stays cut for its session timeout. heal may be
	// called more than once.
	Cut(s driver.Session) (heal func())

	// Hold keeps back every reply to s until release is called: requests reach the ensemble and
	// are executed, the connection looks alive, and the session gets no reply. Kill breaks a
	// held connection, and the replies that were kept back are lost. The suite calls release
	// well within the session timeout; it may call it more than once, and after Kill. It never
	// holds and cuts the same session at the same time. ok is false if the harness cannot do
	// this; the subtests that need it are then skipped.
	Hold(s driver.Session) (release func(), ok bool)

	// Reaping returns how long the ensemble takes at most to remove a container that has
	// become empty. Zero means that the ensemble has no containers, or that it takes too
	// long; the subtests on containers are then skipped.
	Reaping() time.Duration

	// Parallel reports whether subtests may run in parallel. RunSynctest does not call it.
	Parallel() bool
}

// Staler is implemented by a [Harness] that has servers which can lag. Without it, the subtests that need one are skipped.
type Staler interface {
	// Stale makes a server lag, calls change, which writes and reads with s, and breaks the connection of
	// s. Until heal is called, s can only reach the server that lags, which shows nothing of what change
	// did for at least a quarter of Timeout. heal may be called more than once. ok is false, and change is not
	// called, if the ensemble of this run has no such server.
	Stale(s driver.Session, change func()) (heal func(), ok bool)
}
