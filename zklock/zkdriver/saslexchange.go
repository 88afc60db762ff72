package zkdriver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	opSASL = 102

	// saslXid is the xid of the requests of an exchange. Only they are under way on their
	// connection.
	saslXid = -7

	// maxToken bounds a server's challenge. Those of Kerberos have some hundred bytes.
	maxToken = 64 << 10

	// startLimit bounds the wait of one attempt on a server for tickets.
	startLimit = 10 * time.Second

	codeAuthFailed = -115

	// mechanismGSSAPI is the registered name of Kerberos' mechanism.
	mechanismGSSAPI = "GSSAPI"
)

// authentication is the SASL exchange of one connection. It comes right after the handshake:
// a server that requires it refuses all other requests before it, and one that does not would
// set watches without the right to see their events.
type authentication struct {
	mechanism string
	exchange  Exchange
}

// start prepares the authentication of a connection to server. It returns nil if the
// connector uses no SASL.
func (s *sasl) start(ctx context.Context, server string) (*authentication, error) {
	if s == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	x, err := s.Start(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("SASL (%s): %w", s.Name(), err)
	}
	return &authentication{s.Name(), x}, nil
}

// run authenticates a connection whose handshake is complete. w and r are the connection, which
// has a deadline. Without an error the server has confirmed the client's identity, and the
// mechanism, if it can, the server's.
func (a *authentication) run(w io.Writer, r *bufio.Reader) error {
	if a == nil {
		return nil
	}
	var challenge []byte
	for sent := 0; ; sent++ {
		response, done, err := a.exchange.Step(challenge)
		if err != nil {
			return a.refuse(fmt.Sprintf("the SASL authentication (%s) has failed: %v", a.mechanism, err), err)
		}
		if done && response == nil {
			return nil
		}
		if _, err := w.Write(saslFrame(response)); err != nil {
			return &brokenExchange{a.mechanism, err}
		}
		code, token, err := readSASL(r)
		switch {
		case errors.Is(err, errBadFrame):
			return fmt.Errorf("SASL (%s): %w", a.mechanism, err)
		case err != nil:
			return &brokenExchange{a.mechanism, err}
		case code != 0:
			return a.refuse(a.refusal(code, sent), nil)
		case done:
			return nil
		case token == nil && sent == 0:
			text := "the server has no SASL: leave it out on the client, or give the server a JAAS section Server and authProvider.sasl"
			if len(response) > 0 { // which the server may have refused, with allowSaslFailedClients
				text += "; or it refused the client, and allowSaslFailedClients hides that: its log has the reason"
			}
			return a.refuse(text, nil)
		case token == nil:
			// allowSaslFailedClients: the connection would go on without an identity.
			return a.refuse(fmt.Sprintf("the server did not accept the SASL authentication (%s), and would go on without an identity: the user is unknown there, or the password is wrong", a.mechanism), nil)
		}
		challenge = token
	}
}

// refusal describes an error code. The server's reason is in its log only.
func (a *authentication) refusal(code int32, sent int) string {
	text := fmt.Sprintf("the server refused the SASL authentication (%s) with code %d: ", a.mechanism, code)
	switch {
	case code != codeAuthFailed && code != codeNeedsAuth:
		return text + "its log has the reason"
	case a.mechanism == mechanismDigestMD5 && sent == 0:
		return text + "its JAAS section Server is for another mechanism, such as Kerberos, or it forbids DIGEST-MD5: releases after 3.9.5 do so unless they run with -Dzookeeper.fips-mode=false"
	case a.mechanism == mechanismDigestMD5:
		return text + "the user is unknown there, or the password is wrong"
	case a.mechanism == mechanismGSSAPI:
		return text + "its log has the reason; if the host in the URL is the name of several servers, the ticket may be for another one of them: give each server a host of its own"
	}
	return text + "its log has the reason"
}

// refuse returns the error of an authentication that cannot succeed before one of the sides is
// changed.
func (a *authentication) refuse(text string, cause error) error {
	is := []error{driver.ErrAuthFailed}
	if cause != nil {
		is = append(is, cause)
	}
	return &verdict{text, is}
}

// brokenExchange is the error of a connection that ended during the exchange, or whose server
// did not answer in time.
type brokenExchange struct {
	mechanism string
	err       error
}

// Error implements error.
func (b *brokenExchange) Error() string {
	return fmt.Sprintf("the server did not answer in the SASL authentication (%s), its log may have the reason: %v", b.mechanism, b.err)
}

// Unwrap returns the cause.
func (b *brokenExchange) Unwrap() error { return b.err }

// saslFrame makes the request with a token. The length of a missing token would be -1, and
// servers close the connection at that.
func saslFrame(token []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+4+4+len(token)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(0x100000000+saslXid))
	frame = binary.BigEndian.AppendUint32(frame, opSASL)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(token)))
	return append(frame, token...)
}

// readSASL reads the reply to a saslFrame. A null token is nil, an empty one is not.
func readSASL(r *bufio.Reader) (code int32, token []byte, err error) {
	frame, err := readFrame(r, nil, replyHeaderLen+4+maxToken)
	if err != nil {
		return 0, nil, err
	}
	reply := parseReply(frame)
	if reply.xid != saslXid {
		return 0, nil, fmt.Errorf("%w: a reply with xid %d in the SASL exchange", errBadFrame, reply.xid)
	}
	body := frame[prefixLen+replyHeaderLen:]
	if reply.code != 0 {
		return reply.code, nil, nil // servers send a null token, or none
	}
	rest, ok := skipBuffer(body)
	if !ok || len(rest) > 0 {
		return 0, nil, fmt.Errorf("%w: a SASL token that does not fit its frame", errBadFrame)
	}
	if int32(binary.BigEndian.Uint32(body)) < 0 {
		return 0, nil, nil
	}
	return 0, body[4:], nil
}
