package zkdriver

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
)

// zxid is the newest transaction that the session has seen the effects of. It
// is told to servers twice: by a ConnectRequest, since a server that is behind
// it must not take the session over, and when watches are set again, since whatever
// changed after it is reported at once.
//
// The client keeps one too, but counts replies to requests that no caller made. So it
// is shown no zxid at all, its own stays 0, and what goes out in its place is this one.
type zxid struct{ v atomic.Int64 }

// Offsets of zxids in frames, length prefix included.
const (
	replyZxid   = prefixLen + 4 // after the xid
	connectZxid = prefixLen + 4 // after the protocol version
)

// note takes in the zxid of a reply. One to a request that failed before it was looked
// at has none.
func (z *zxid) note(v int64) {
	if v > 0 {
		z.v.Store(v)
	}
}

func (z *zxid) newest() int64 { return z.v.Load() }

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
