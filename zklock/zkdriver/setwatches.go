package zkdriver

import (
	"encoding/binary"
	"slices"
	"time"
)

const (
	// maxSetWatches bounds one request that sets watches again, as ZooKeeper's own
	// client does. It is far below the servers' default limit, which may be
	// configured lower.
	maxSetWatches = 128 << 10

	// setWatchesXid is the xid of the first such request of a connection; the xids of
	// further ones go down from it. The client's own xids start at 1, and the
	// protocol's reserved ones end at -4.
	setWatchesXid = -8
)

// setWatches sets the session's watches again, once for each connection.
//
// Before it, only the handshake and credentials have been sent on the connection. So
// all watches are set before any request whose reply could show a change earlier than
// the event that reports the change. And credentials are sent before any watch, since
// a server may close a connection that has none. The reader calls setWatches while
// the client waits, for the handshake or for the answer to its credentials, and
// writes nothing.
//
// The server reports at once everything that has changed since the newest transaction
// that the session has seen.
func (c *conn) setWatches(timeout time.Duration) error {
	if c.watching {
		return nil
	}
	c.watching = true
	// No request of the user has been sent on this connection yet, so no watch can be
	// armed meanwhile. And a watch can only fire after it has been set again.
	paths := c.session.watches.armed()
	if len(paths) == 0 {
		return nil
	}
	since := c.session.zxid.newest()
	if err := c.Conn.SetWriteDeadline(time.Now().Add(timeout / 3)); err != nil {
		return err
	}
	for xid := int32(setWatchesXid); len(paths) > 0; xid-- {
		var frame []byte
		frame, paths = setWatchesFrame(xid, since, paths)
		c.register(xid, pending{opcode: opSetWatch, at: time.Now()})
		if _, err := c.Conn.Write(frame); err != nil {
			return err
		}
	}
	return c.Conn.SetWriteDeadline(time.Time{})
}

// setWatchesFrame makes a request for as many of the paths as fit, and returns the
// rest.
func setWatchesFrame(xid int32, since int64, paths []string) (frame []byte, rest []string) {
	n, size := 0, 0
	for n < len(paths) && (n == 0 || size+4+len(paths[n]) <= maxSetWatches) {
		size += 4 + len(paths[n])
		n++
	}
	frame = slices.Grow(frame, prefixLen+8+8+3*4+size)
	frame = append(frame, 0, 0, 0, 0) // the length
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	frame = binary.BigEndian.AppendUint32(frame, opSetWatch)
	frame = binary.BigEndian.AppendUint64(frame, uint64(since))
	frame = binary.BigEndian.AppendUint32(frame, uint32(n)) // watches on data
	for _, path := range paths[:n] {
		frame = binary.BigEndian.AppendUint32(frame, uint32(len(path)))
		frame = append(frame, path...)
	}
	frame = append(frame, make([]byte, 2*4)...) // no watches on existence, none on children
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-prefixLen))
	return frame, paths[n:]
}

// withWatch returns a copy of a frame that reads a node, with the flag that sets a
// watch. The flag is the last byte.
func withWatch(frame []byte) []byte {
	frame = slices.Clone(frame)
	frame[len(frame)-1] = 1
	return frame
}
