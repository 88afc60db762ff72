package zkdriver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// errNotZooKeeper means that the peer does not seem to be a ZooKeeper server: it
// spoke another protocol, or it closed every connection without an answer. A server
// without a quorum also closes connections, and so does a server that expects TLS.
var errNotZooKeeper = errors.New("not a ZooKeeper server")

const (
	// maxHandshake bounds the first frame of a server. Frames of real servers have 36
	// or 37 bytes.
	maxHandshake = 256

	// minHandshake is the length of a ConnectResponse with an empty password.
	minHandshake = 4 + 4 + 8 + 4
)

// connectResponse is a server's answer to the first frame of a connection.
type connectResponse struct {
	timeout   time.Duration // negotiated
	sessionID int64         // 0 means that the requested session has expired
	password  driver.Secret // the session's, any bytes
}

// readHandshake reads the first frame of a server, with its length prefix. It checks
// that the frame is a ConnectResponse before its content is used.
func readHandshake(r *bufio.Reader) (frame []byte, resp connectResponse, err error) {
	frame = make([]byte, prefixLen, prefixLen+maxHandshake)
	if n, err := io.ReadFull(r, frame); err != nil {
		if n > 0 {
			return nil, resp, notZooKeeper(frame[:n])
		}
		return nil, resp, &unanswered{err}
	}
	n := int64(binary.BigEndian.Uint32(frame))
	if n < minHandshake || n > maxHandshake {
		// A few more bytes, if they have already arrived, make a better message.
		more, _ := r.Peek(min(r.Buffered(), 12))
		return nil, resp, notZooKeeper(append(frame, more...))
	}
	frame = frame[:prefixLen+int(n)]
	if _, err := io.ReadFull(r, frame[prefixLen:]); err != nil {
		return nil, resp, fmt.Errorf("handshake cut short: %w", err)
	}
	resp, ok := parseHandshake(frame[prefixLen:])
	if !ok {
		return nil, resp, notZooKeeper(frame[prefixLen:])
	}
	return frame, resp, nil
}

// parseHandshake parses a ConnectResponse: protocol version, timeout in milliseconds,
// session id, password and, since ZooKeeper 3.4, a byte that marks a read-only
// server.
func parseHandshake(b []byte) (resp connectResponse, ok bool) {
	if len(b) < minHandshake {
		return resp, false
	}
	version := binary.BigEndian.Uint32(b)
	timeout := int32(binary.BigEndian.Uint32(b[4:]))
	resp.sessionID = int64(binary.BigEndian.Uint64(b[8:]))
	rest, whole := skipBuffer(b[16:])
	if whole && len(b)-len(rest) > minHandshake {
		resp.password = driver.NewSecret(string(b[minHandshake : len(b)-len(rest)]))
	}
	if version != 0 || timeout < 0 || !whole || len(rest) > 1 {
		return connectResponse{}, false
	}
	if resp.sessionID != 0 && timeout == 0 {
		return connectResponse{}, false
	}
	resp.timeout = time.Duration(timeout) * time.Millisecond
	return resp, true
}

// errKeeper is the error for sessions of ClickHouse Keeper. It speaks the protocol, and what locks rest on is not so there.
var errKeeper error = &verdict{"it is ClickHouse Keeper, and not ZooKeeper: it resumes no session, so each lost connection loses its locks, and ends sessions by a clock that can be set, so two clients may hold one lock: use ZooKeeper, or accept that with " + keyAllowKeeper + "=true",
	[]error{errNotZooKeeper, driver.ErrProtocol}}

// ofKeeper reports whether a new session is one of ClickHouse Keeper, which gives all of them a password of zeros, and asks for
// none. ZooKeeper has zeros in the refusal of a session that has ended; its passwords are random.
func (r *connectResponse) ofKeeper() bool {
	return r.sessionID != 0 && r.password.Reveal() == string(make([]byte, 16))
}

// notZooKeeper returns an error that says what the peer seems to be instead.
func notZooKeeper(first []byte) error {
	hint := ""
	switch {
	case bytes.HasPrefix(first, []byte("HTTP")):
		hint = ", it speaks HTTP: check the host and the port"
	case len(first) >= 2 && first[0] == 0x15 && first[1] == 3:
		hint = ", it speaks TLS: use zks://"
	}
	return fmt.Errorf("%w: it answered %q%s (%w)", errNotZooKeeper, first[:min(len(first), 16)], hint, driver.ErrProtocol)
}

// connectRequestSession returns the session id in the client's first frame. The frame
// holds: protocol version, last zxid seen, timeout, session id, password.
func connectRequestSession(frame []byte) (id int64, ok bool) {
	const at = prefixLen + 4 + 8 + 4
	if len(frame) < at+8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(frame[at:])), true
}

// maxTimeout is the longest session timeout the protocol can express.
const maxTimeout = math.MaxInt32 * time.Millisecond
