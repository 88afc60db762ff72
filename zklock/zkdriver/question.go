package zkdriver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"time"
)

// ask asks the server at an address whether it serves clients, on connections of their own; its certificate is for name. It reports whether the server answers at
// all, and whether it serves, as far as it says. It sends nothing secret.
//
// A server answers srvr from its memory, without its quorum. All versions execute srvr unless an operator has turned
// it off. Then the server is asked to resume a session that does not exist: one that serves refuses that at once,
// and another one closes the connection.
func (d *dialer) ask(ctx context.Context, at, name string) (answers, serves bool) {
	var status []byte
	answers = d.exchange(ctx, at, name, []byte("srvr"), func(c net.Conn) {
		status, _ = io.ReadAll(io.LimitReader(c, maxStatus)) // the server closes the connection behind its answer
	})
	switch {
	case bytes.HasPrefix(status, notExecuted):
		d.exchange(ctx, at, name, noSession(), func(c net.Conn) {
			_, resp, err := readHandshake(bufio.NewReader(c))
			serves = err == nil && resp.sessionID == 0
		})
	case isStatus(status):
		serves = !bytes.Contains(status, []byte("not currently serving")) && !bytes.Contains(status, []byte("\nMode: read-only\n"))
	}
	return answers || len(status) > 0, serves
}

// exchange makes a connection to a server, sends it a message and calls read, until ctx ends. It reports whether
// something behind the server's port has answered in TLS: without TLS, only the answer to the message shows that.
func (d *dialer) exchange(ctx context.Context, at, name string, message []byte, read func(net.Conn)) (answers bool) {
	raw, err := d.config.dialTCP(ctx, at)
	if err != nil {
		return false
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	c := raw
	if d.config.tls != nil {
		if c, err = d.config.tls.wrap(ctx, raw, name); err != nil {
			return isAlert(err)
		}
	}
	if _, err := c.Write(message); err == nil {
		read(c)
	}
	return d.config.tls != nil
}

// notExecuted begins a server's answer to srvr if its 4lw.commands.whitelist lacks it.
var notExecuted = []byte("srvr is not executed")

// noSession returns the frame that asks a server to resume session 1. Servers make no ids that small, and the frame has
// no password.
func noSession() []byte {
	const version, timeout, password = 0, 4000, 16
	b := binary.BigEndian.AppendUint32(nil, 4+8+4+8+4+password)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint64(b, 0) // no transaction was seen
	b = binary.BigEndian.AppendUint32(b, timeout)
	b = binary.BigEndian.AppendUint64(b, 1)
	return append(binary.BigEndian.AppendUint32(b, password), make([]byte, password)...)
}
