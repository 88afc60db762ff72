package zkdriver

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
)

// zxid is the newest transaction that the session has seen the effects of. It
// is told to servers twice: by a ConnectRequest, since a server that is behind
// it must not take the session over, and by SetWatches, since whatever changed
// after it is told of at once.
//
// The client keeps one too, which its reader changes with each reply, while its
// loop may be reading it for SetWatches of the same connection: nothing makes
// one wait for the other. The gate does, but not for the reply to a close, with
// which the session's watches have ended and the client's have not, nor for one
// that nobody asked for, nor if a watch has just been set by a call that was
// abandoned. So the client is shown no zxid at all. Its own stays 0 and is never
// written, and what goes out in its place is this one.
type zxid struct{ v atomic.Int64 }

// Offsets of zxids in frames, length prefix included.
const (
	replyZxid    = prefixLen + 4     // after the xid
	connectZxid  = prefixLen + 4     // after the protocol version
	setWatchZxid = prefixLen + 4 + 4 // after xid and operation code
)

// note takes in the zxid of a reply. Some have none, those to credentials and
// to what failed before it was looked at.
func (z *zxid) note(v int64) {
	if v > 0 {
		z.v.Store(v)
	}
}

func (z *zxid) newest() int64 { return z.v.Load() }

// watchedFrom is what watches are set again from. Those that the client has
// without any from a connection before were set on this one, before the newest
// zxid: the server has them already.
func (c *conn) watchedFrom() int64 {
	if c.since != 0 {
		return c.since
	}
	return c.session.zxid.newest()
}

// clearZxid takes the zxid out of a reply.
func clearZxid(frame []byte) { clear(frame[replyZxid : replyZxid+8]) }

// withZxid returns a copy of a frame with a zxid put in; the client's own is
// not to be written to.
func withZxid(frame []byte, at int, v int64) []byte {
	if len(frame) < at+8 {
		return frame
	}
	frame = slices.Clone(frame)
	binary.BigEndian.PutUint64(frame[at:], uint64(v))
	return frame
}
