package session

import (
	"cmp"
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// ZooKeeper's servers write all paths of a session's ephemeral znodes into the transaction that ends the
// session, since version 3.6.0 (ZOOKEEPER-4306). They do not check its size when they write it, and they do
// when they read it: from another server, and from the log. One that is too large stops the ensemble for
// good: no follower can read it, and no server can start again. The limit is jute.maxbuffer and the extra
// size, which is as much again by default.
//
// So a session never has more bytes of such paths than maxEphemerals, but for a reserve of registrations:
// see Reserve. Invariants:
//
//   - A place and a registration count from before their creates are sent until their znodes are certainly
//     gone. A place that replaces another one takes over the count: one transaction deletes and creates.
//   - An ephemeral znode of the program, which a transaction under a lock creates, counts from before the
//     transaction is sent until another such transaction has deleted it. The client does not learn of
//     other deletes. So these have at most half of the room: locks never lack room because of them.
//   - What is not counted is in the rest of jute.maxbuffer and in the extra size: creates that are applied
//     late, until the client deletes them.
//   - A session takes a place, or refuses it, by its count at that moment. So it does not matter that the
//     pool has chosen the session before, for many callers at once: Enter decides, and one that is refused
//     asks the pool again.

// defaultMaxBuffer is the servers' default jute.maxbuffer.
const defaultMaxBuffer = 0xfffff

// maxBuffer returns the servers' jute.maxbuffer.
func (c *Settings) maxBuffer() int { return cmp.Or(c.JuteMaxbuffer, defaultMaxBuffer) }

// maxEphemerals returns how many bytes the ephemeral znodes of a session have at most: seven eighths of
// jute.maxbuffer.
func (c *Settings) maxEphemerals() int { return c.maxBuffer() / 8 * 7 }

// Reserve returns how many more bytes a session has for the registrations of waits, which places do not use: the
// waits of a client that is full of queue nodes may be in a circle, too.
func (c *Settings) Reserve() int { return c.maxBuffer() / 32 }

// EphemeralSize returns how many bytes an ephemeral znode with a path of that length has in the transaction
// that ends its session.
func EphemeralSize(pathLength int) int { return 4 + pathLength }

// full returns the error of a caller that no session has room for.
func (c *Settings) full(bytes int) error {
	if bytes > c.maxEphemerals() {
		return fmt.Errorf("%w: the queue nodes of this acquisition have %d bytes, and one session may have %d with jute_maxbuffer=%d: ask for fewer names at once",
			errs.ErrTooManyWaiters, bytes, c.maxEphemerals(), c.maxBuffer())
	}
	return fmt.Errorf("%w: the queue nodes of each of pool_max_sessions=%d sessions have almost as many bytes as the servers can delete at its end, %d with jute_maxbuffer=%d: raise pool_max_sessions",
		errs.ErrFull, c.PoolMaxSessions, c.maxEphemerals(), c.maxBuffer())
}
