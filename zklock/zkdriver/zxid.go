package zkdriver

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
)

// zxid is the newest transaction whose effects the session has seen. Servers receive
// it in two requests. In a ConnectRequest, it keeps a server that is behind from
// taking over the session. In a request that sets watches again, it makes the server
// report at once everything that changed later.
//
// A session that is being closed sends 0 instead. It reads nothing more, so each server may end it:
// also one that is behind. And only so does an ensemble that has lost transactions, such as one that was
// restored, say that the session is over; with a greater zxid than its own it closes the connection.
//
// The client keeps a zxid too, but counts replies to requests that no caller made. So
// the client never sees a zxid: its own stays 0, and this one is sent instead.
type zxid struct{ v atomic.Int64 }

// Offsets of zxids in frames, including the length prefix.
const (
	replyZxid   = prefixLen + 4 // after the xid
	connectZxid = prefixLen + 4 // after the protocol version
)

// note records the zxid of a reply. The reply to a request that failed before it was
// processed has none.
func (z *zxid) note(v int64) {
	if v > 0 {
		z.v.Store(v)
	}
}

func (z *zxid) newest() int64 { return z.v.Load() }

// clearZxid removes the zxid from a reply.
func clearZxid(frame []byte) { clear(frame[replyZxid : replyZxid+8]) }

// withZxid returns a copy of a frame with the zxid v in it. The client's own frame
// must not be written to.
func withZxid(frame []byte, at int, v int64) []byte {
	if len(frame) < at+8 {
		return frame
	}
	frame = slices.Clone(frame)
	binary.BigEndian.PutUint64(frame[at:], uint64(v))
	return frame
}
