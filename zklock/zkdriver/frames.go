package zkdriver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// maxFrame bounds the length of one frame from a server. The server's own limit
	// does not apply to its answers: a list of children may well exceed the 1 MiB
	// that a request may have. A longer reply to a request is skipped: see conn.skip.
	maxFrame = 64 << 20

	// prefixLen is the length of the length field in front of each frame.
	prefixLen = 4

	// replyHeaderLen is the length of xid, zxid and error. Every frame from the
	// server except the first starts with them.
	replyHeaderLen = 4 + 8 + 4

	// statLen is the length of an encoded Stat.
	statLen = 6*8 + 5*4
)

// Operation codes and reserved xids of the protocol that this package uses in frames.
const (
	opCreate    = 1
	opExists    = 3
	opGetData   = 4
	opSetData   = 5
	opPing      = 11
	opChildren2 = 12
	opCheck     = 13
	opDelete    = 2
	opMulti     = 14
	opCreate2   = 15
	opContainer = 19
	opSetAuth   = 100
	opSetWatch  = 101
	opClose     = -11
	opErrorRes  = -1

	pingXid = -2
)

// errBadFrame is the reason for dropping a connection that carries something other
// than ZooKeeper's protocol.
var errBadFrame = errors.New("malformed frame from the server")

// oversized is the error of readFrame for a frame above the limit. readFrame has read only the
// frame's length.
type oversized struct{ length int64 }

// Error implements error.
func (e *oversized) Error() string { return fmt.Sprintf("%v: length %d", errBadFrame, e.length) }

// Unwrap returns errBadFrame.
func (e *oversized) Unwrap() error { return errBadFrame }

// readFrame reads one frame with its length prefix into buf, which it enlarges as
// needed, and returns it. It checks the length before using it, and takes memory only
// as bytes arrive, so a corrupt length costs nothing.
func readFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	const step = 64 << 10
	buf = append(buf[:0], 0, 0, 0, 0)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(buf))
	if n < replyHeaderLen {
		return nil, fmt.Errorf("%w: length %d", errBadFrame, n)
	}
	if n > int64(limit) {
		return nil, &oversized{n}
	}
	for total := prefixLen + int(n); len(buf) < total; {
		// Growing at least to the double keeps the copying linear. Growing at most to
		// the double keeps the memory within twice of what the server has really
		// sent.
		from, to := len(buf), min(total, max(cap(buf), 2*len(buf), step))
		if to > cap(buf) {
			buf = append(make([]byte, 0, to), buf...)
		}
		buf = buf[:to]
		if _, err := io.ReadFull(r, buf[from:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}

// reply is the header of a frame from the server.
type reply struct {
	xid  int32
	zxid int64
	code int32
}

// parseReply parses the header of a frame that readFrame has returned.
func parseReply(frame []byte) reply {
	return reply{
		xid:  int32(binary.BigEndian.Uint32(frame[4:])),
		zxid: int64(binary.BigEndian.Uint64(frame[replyZxid:])),
		code: int32(binary.BigEndian.Uint32(frame[16:])),
	}
}

// checkBody refuses a reply that would crash the client. The client makes slices of
// any length that a reply claims, and does not recover from an index out of range in
// the answer to a transaction. checkBody returns the frame for the client, which may be a
// shorter one in the same memory: see readable.
func checkBody(opcode int32, frame []byte) ([]byte, error) {
	const bodyAt = prefixLen + replyHeaderLen
	body := frame[bodyAt:]
	switch opcode {
	case opGetData:
		if _, ok := skipBuffer(body); !ok {
			return nil, fmt.Errorf("%w: data longer than its frame", errBadFrame)
		}
	case opChildren2:
		// Each name begins with a length field of four bytes.
		if len(body) < 4 || int64(binary.BigEndian.Uint32(body)) > int64(len(body)/4) {
			return nil, fmt.Errorf("%w: more children than the frame can hold", errBadFrame)
		}
	case opMulti:
		n, ok := readable(body)
		if !ok {
			return nil, fmt.Errorf("%w: truncated results of a transaction", errBadFrame)
		}
		frame = frame[:bodyAt+n]
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-prefixLen))
	}
	return frame, nil
}

// skipBuffer skips a length field and as many bytes. A negative length means null.
func skipBuffer(b []byte) ([]byte, bool) {
	if len(b) < 4 {
		return nil, false
	}
	n := int64(int32(binary.BigEndian.Uint32(b)))
	b = b[4:]
	if n < 0 {
		return b, true
	}
	if n > int64(len(b)) {
		return nil, false
	}
	return b[n:], true
}

// request is the header of a frame to the server.
type request struct {
	xid    int32
	opcode int32
}

// parseRequest parses the header of a frame that the client sends.
func parseRequest(frame []byte) (request, bool) {
	if len(frame) < prefixLen+8 {
		return request{}, false
	}
	return request{
		xid:    int32(binary.BigEndian.Uint32(frame[4:])),
		opcode: int32(binary.BigEndian.Uint32(frame[8:])),
	}, true
}

// fromUser reports whether one of the session's methods sends a request, and not the client
// itself.
func (r request) fromUser() bool {
	switch r.opcode {
	case opPing, opSetWatch, opSetAuth, opClose:
		return false
	}
	return true
}

// commits reports whether the quorum takes part in the answer. A server answers everything else from its memory.
func (r request) commits() bool {
	switch r.opcode {
	case opExists, opGetData, opChildren2:
		return false
	}
	return r.fromUser()
}
