package zkdriver

import (
	"encoding/binary"
	"slices"
	"time"
)

const (
	// maxSetWatches bounds one request that sets watches again, unless one path is longer.
	// The server cuts the connection of a request that is larger than its jute.maxbuffer. As
	// these requests come first on each connection, the session could never connect again.
	// No server that carries locks has a lower limit than this. The requests do not wait for
	// each other, so more of them cost little.
	maxSetWatches = 4 << 10

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
	// No request of the user has been sent on this connection yet, so no new watch can be
	// armed. And a watch can only fire after it has been set again.
	lists := c.session.watches.paths()
	if left(lists) == 0 {
		return nil
	}
	since := c.session.zxid.newest()
	if err := c.Conn.SetWriteDeadline(time.Now().Add(timeout / 3)); err != nil {
		return err
	}
	for xid := int32(setWatchesXid); left(lists) > 0; xid-- {
		frame := setWatchesFrame(xid, since, &lists)
		c.register(xid, pending{opcode: opSetWatch, at: time.Now()})
		if _, err := c.Conn.Write(frame); err != nil {
			return err
		}
	}
	return c.Conn.SetWriteDeadline(time.Time{})
}

// left returns the number of paths in all lists.
func left(lists [watchLists][]string) (n int) {
	for _, paths := range lists {
		n += len(paths)
	}
	return n
}

// setWatchesFrame makes a request for as many of the paths as fit, at least one, and takes
// them off their lists.
func setWatchesFrame(xid int32, since int64, lists *[watchLists][]string) []byte {
	frame := make([]byte, prefixLen, 4<<10)
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	frame = binary.BigEndian.AppendUint32(frame, opSetWatch)
	frame = binary.BigEndian.AppendUint64(frame, uint64(since))
	taken, size := 0, len(frame)-prefixLen+4*len(lists)
	for i, paths := range lists {
		n := 0
		for n < len(paths) && (taken == 0 || size+4+len(paths[n]) <= maxSetWatches) {
			size += 4 + len(paths[n])
			n++
			taken++
		}
		frame = binary.BigEndian.AppendUint32(frame, uint32(n))
		for _, path := range paths[:n] {
			frame = binary.BigEndian.AppendUint32(frame, uint32(len(path)))
			frame = append(frame, path...)
		}
		lists[i] = paths[n:]
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-prefixLen))
	return frame
}

// withWatch returns a copy of a frame that reads a node, with the flag that sets a
// watch. The flag is the last byte.
func withWatch(frame []byte) []byte {
	frame = slices.Clone(frame)
	frame[len(frame)-1] = 1
	return frame
}
