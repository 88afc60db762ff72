package drivertest

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Harness is one ensemble together with powers over it. Each subtest asks for
// one; several may share an ensemble, since a subtest works under a path of its
// own. Methods that take a session are given one that came from a connector of
// this harness, and identify it by its ID.
type Harness interface {
	// Connector makes a connector whose sessions have no identity. The suite
	// calls it once for every session it opens, and closes the connector.
	Connector() driver.Connector

	// Authenticated makes a connector whose sessions have an identity, the
	// same one at each call. ok is false if the driver has no way to give them
	// one; the subtests on access lists are then skipped.
	Authenticated() (c driver.Connector, ok bool)

	// Timeout is the session timeout that the suite asks for where it has
	// Expire called: short, so that a real server does not take long, yet long
	// enough for a slow machine to keep such a session alive for a moment. The
	// ensemble must grant it as it is.
	Timeout() time.Duration

	// Limits are the shortest and the longest session timeout granted.
	// Sessions that are not going to be expired ask for the longest.
	Limits() (shortest, longest time.Duration)

	// Expire makes the ensemble expire s, which asked for Timeout, against its
	// will, and returns when it has: the session's ephemeral znodes are gone.
	// The session's side may learn of it later, but without more ado.
	Expire(ctx context.Context, s driver.Session) error

	// Kill breaks the connection of s once: what is in flight on it is lost. A
	// new connection can be made at once.
	Kill(s driver.Session)

	// Cut breaks the connection of s, and lets no new one be made until heal
	// is called. Its session is not expired by that, unless it is left so for
	// the session timeout. heal may be called more than once.
	Cut(s driver.Session) (heal func())

	// Hold keeps every reply from s until release is called: its requests
	// reach the ensemble and are executed, the connection looks alive, nothing
	// comes back. Kill breaks a held connection, and what was held back is
	// lost. release may be called more than once, also after that; it is
	// called well within the session timeout. No session is both held and cut.
	// ok is false if that can not be arranged; the subtests on requests in
	// flight are then skipped.
	Hold(s driver.Session) (release func(), ok bool)

	// Reaping is how long the ensemble takes at most to remove a container
	// that has become empty. Zero means that it has no containers, or takes
	// too long to wait for; the subtests on their removal are then skipped.
	Reaping() time.Duration

	// Parallel reports whether subtests may run in parallel. RunSynctest does
	// not ask.
	Parallel() bool
}
