package zkdriver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock/driver"
)

var (
	_ driver.Credentialed  = (*session)(nil)
	_ driver.SessionCloser = (*connector)(nil)
)

// Credentials implements driver.Credentialed.
func (s *session) Credentials() driver.Credentials {
	s.mu.Lock()
	defer s.mu.Unlock()
	return driver.Credentials{ID: s.id, Password: s.password, Timeout: s.timeout}
}

// CloseSession implements driver.SessionCloser.
func (c *connector) CloseSession(ctx context.Context, cred driver.Credentials) error {
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	servers := c.first.order(c.config.servers)
	budget := attemptBudget(cred.Timeout, len(servers))
	var all []error
	sent := false
	for _, server := range servers {
		reached, err := c.config.closeSession(ctx, server, budget, cred)
		if err == nil {
			return nil
		}
		sent = sent || reached
		all = append(all, fmt.Errorf("%s: %w", server, err))
		if ctx.Err() != nil {
			all = append(all, context.Cause(ctx))
			break
		}
	}
	if !sent {
		all = append(all, driver.ErrNotSent)
	}
	return fmt.Errorf("zkdriver: close session %#x: not confirmed by the ensemble: %w", uint64(cred.ID), oneline.Join(all...))
}

// errNotClosed is the reason if a server answers a request to close a session with an error.
var errNotClosed = errors.New("the server refused to close the session")

// closeSession takes a session over at one server, and ends it there. Only an answer shows that
// the session is over: that it has ended, or that the server knows no such session. The end of
// a connection shows nothing. sent says that the server may have taken the session over.
func (c *config) closeSession(ctx context.Context, server string, budget time.Duration, cred driver.Credentials) (sent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var auth []byte // servers may demand it of all requests but the first (enforce.auth.enabled)
	if c.creds != nil {
		digest, err := c.creds.digest()
		if err != nil {
			return false, err
		}
		auth = authRequest(digest)
	}
	identity, err := c.sasl.start(ctx, server)
	if err != nil {
		return false, err
	}
	raw, err := c.dialTCP(ctx, server)
	if err != nil {
		return false, err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	var wrapped net.Conn = raw
	if c.tls != nil {
		if wrapped, err = c.tls.wrap(ctx, raw, server); err != nil {
			return false, err
		}
	}
	// The frames are sent apart: a server must have answered the first one before it knows the
	// session, and an attempt that breaks off in between does no harm.
	if _, err := wrapped.Write(connectRequest(cred)); err != nil {
		return false, err
	}
	r := bufio.NewReader(wrapped)
	_, resp, err := readHandshake(r)
	if err != nil {
		// A server without a quorum closes connections before it answers.
		return errors.Is(err, os.ErrDeadlineExceeded), fmt.Errorf("handshake: %w", err)
	}
	switch resp.sessionID {
	case 0:
		return false, nil // the ensemble knows no such session
	case cred.ID:
	default:
		return false, fmt.Errorf("%w: it answered for session %#x (%w)", errNotZooKeeper, uint64(resp.sessionID), driver.ErrProtocol)
	}
	if err := identity.run(wrapped, r); err != nil {
		return true, err
	}
	if _, err := wrapped.Write(append(auth, closeRequest()...)); err != nil {
		return true, err
	}
	var buf []byte
	for {
		if buf, err = readFrame(r, buf, maxFrame); err != nil {
			return true, err
		}
		if reply := parseReply(buf); reply.xid == closeXid {
			if reply.code == codeNeedsAuth {
				return true, fmt.Errorf("%w: %w", driver.ErrAuthFailed, errNeedsAuth)
			}
			if reply.code != 0 && reply.code != codeSessionExpired {
				return true, fmt.Errorf("%w: error %d", errNotClosed, reply.code)
			}
			return true, nil
		}
	}
}

// closeXid is the xid of the only request that closeSession makes.
const closeXid = 1

// connectRequest returns the first frame of a connection that takes a session over.
func connectRequest(cred driver.Credentials) []byte {
	password := cred.Password.Reveal()
	b := make([]byte, prefixLen, prefixLen+4+8+4+8+4+len(password)+1)
	b = binary.BigEndian.AppendUint32(b, 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0) // last zxid seen: a server that lags can close a session, too
	b = binary.BigEndian.AppendUint32(b, uint32(cred.Timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(cred.ID))
	b = binary.BigEndian.AppendUint32(b, uint32(len(password)))
	b = append(b, password...)
	b = append(b, 0) // no server that is read-only
	binary.BigEndian.PutUint32(b, uint32(len(b)-prefixLen))
	return b
}

// authXid is the xid of requests to authenticate.
const authXid = -4

// authRequest returns the frame of a request to authenticate in the digest scheme.
func authRequest(digest []byte) []byte {
	const scheme = "digest"
	b := make([]byte, prefixLen, prefixLen+5*4+len(scheme)+len(digest))
	xid := int32(authXid)
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint32(b, opSetAuth)
	b = binary.BigEndian.AppendUint32(b, 0) // type, which servers ignore
	b = binary.BigEndian.AppendUint32(b, uint32(len(scheme)))
	b = append(b, scheme...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(digest)))
	b = append(b, digest...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-prefixLen))
	return b
}

// closeRequest returns the frame of a request to end the connection's session.
func closeRequest() []byte {
	b := binary.BigEndian.AppendUint32(nil, 8)
	b = binary.BigEndian.AppendUint32(b, closeXid)
	code := int32(opClose)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}
