package zkdriver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// probeWait is how long a probe waits for a ZooKeeper server's answer. After that it sends
	// text that other kinds of servers answer too.
	probeWait = 300 * time.Millisecond

	// probeAgain is how long a connector leaves a server alone after a probe that found nothing
	// permanent. probeSoon is the same after a probe without an answer in time.
	probeAgain = 30 * time.Second
	probeSoon  = time.Second

	// maxStatus is more than the length of a server's answer to srvr.
	maxStatus = 1 << 10
)

// unanswered is the error of a connection whose first message got no answer, either in the TLS
// or in the ZooKeeper handshake: the connection was closed, or time ran out.
type unanswered struct{ err error }

// Error implements error.
func (e *unanswered) Error() string {
	if errors.Is(e.err, os.ErrDeadlineExceeded) || errors.Is(e.err, context.DeadlineExceeded) {
		return "connected, but got no ZooKeeper answer: " + e.err.Error()
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *unanswered) Unwrap() error { return e.err }

// verdict is an error that states what is known about a server, with a text and the
// errors that it matches.
type verdict struct {
	text string
	is   []error
}

// Error implements error.
func (v *verdict) Error() string { return v.text }

// Unwrap lets errors.Is find the errors that it matches.
func (v *verdict) Unwrap() []error { return v.is }

var (
	// errSpeaksTLS is the reason why no plain connection can be made.
	errSpeaksTLS error = &verdict{"it expects TLS: use zks:// instead of zk://", []error{errNotZooKeeper, driver.ErrProtocol}}

	// errSpeaksPlain is the reason why no TLS connection can be made.
	errSpeaksPlain = errors.New("it is a ZooKeeper server that speaks no TLS on this port: use zk:// instead of zks://")

	// errSpeaksHTTP is the reason for a missing or an unexpected answer.
	errSpeaksHTTP error = &verdict{"connected, but got no ZooKeeper answer: it speaks HTTP: check the host and the port", []error{errNotZooKeeper, driver.ErrProtocol}}

	// errNoQuorum is the reason why a server closes connections that it has accepted.
	errNoQuorum = errors.New("closed the connection before it answered: it is a ZooKeeper server that has no quorum at the moment")

	// errReadOnly is the same for a server that goes on for clients that only read.
	errReadOnly = errors.New("closed the connection before it answered: it is a ZooKeeper server that has no quorum at the moment, and is in read-only mode: locks need a quorum")
)

// shouldProbe reports whether a probe of the server may help. If a probe has found nothing
// permanent, the server is left alone for a while: if it is short of connections, another probe
// would make that worse.
func (d *dialer) shouldProbe(server string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var u *unanswered
	if f, failed := d.errs[server]; !d.opening || !failed || f.kind == permanent || !errors.As(f.err, &u) {
		return false
	}
	return d.backoff.probe(server)
}

// probe finds out what kind of server accepts connections and does not answer, or
// closes them. A wrong scheme in the URL has that effect, and so does a web server.
// probe uses separate connections and sends no secret. It returns nil if it could not
// find out.
//
// It takes up to budget. The attempt that follows has the same budget again, since a
// server that is slow to answer an attempt is as slow to answer a probe.
func (d *dialer) probe(server string, budget time.Duration) error {
	ctx, cancel := context.WithTimeout(d.life, budget)
	defer cancel()
	looks := []func(context.Context, string) error{d.probeText}
	if d.config.tls == nil {
		looks = append(looks, d.probeTLS)
	}
	verdicts := make(chan error, len(looks))
	for _, look := range looks {
		go func() { verdicts <- look(ctx, server) }() // joined below
	}
	var found error
	late := false
	for range looks {
		if err := <-verdicts; found == nil && err != nil {
			found = err
			cancel()
		}
		late = late || errors.Is(ctx.Err(), context.DeadlineExceeded)
	}
	if found != nil || late {
		d.backoff.found(server, found)
	}
	return found
}

// probeText asks a ZooKeeper server for its status in plain text. If no answer
// arrives, it completes the text to something that a web server refuses with an HTTP
// answer.
func (d *dialer) probeText(ctx context.Context, server string) error {
	raw, err := d.config.dialTCP(ctx, server)
	if err != nil {
		return nil
	}
	defer raw.Close()
	answer := make([]byte, maxStatus)
	n := 0
	if _, err := raw.Write([]byte("srvr")); err != nil {
		return nil
	}
	if err := raw.SetDeadline(time.Now().Add(probeWait)); err != nil {
		return nil
	}
	if n, err = raw.Read(answer); n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		if err := raw.SetDeadline(time.Time{}); err != nil {
			return nil
		}
		defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
		if _, err := raw.Write([]byte("\r\n\r\n")); err != nil {
			return nil
		}
		n, _ = raw.Read(answer)
	}
	if isStatus(answer[:n]) {
		// The line with the server's mode comes late. The server closes the connection
		// behind its answer; what has arrived when time runs out must be enough.
		if until, ok := ctx.Deadline(); ok {
			_ = raw.SetDeadline(until)
		}
		more, _ := io.ReadFull(raw, answer[n:])
		n += more
	}
	answer = answer[:n]
	switch {
	case bytes.HasPrefix(answer, []byte("HTTP/")):
		return errSpeaksHTTP
	case !isStatus(answer):
		return nil
	case d.config.tls != nil:
		return errSpeaksPlain
	case bytes.Contains(answer, []byte("not currently serving")):
		return errNoQuorum
	case bytes.Contains(answer, []byte("\nMode: read-only\n")):
		return errReadOnly
	}
	return nil
}

// isStatus reports whether an answer is a ZooKeeper server's answer to a four-letter
// command, or its refusal to execute one.
func isStatus(answer []byte) bool {
	for _, prefix := range []string{"Zookeeper version", "This ZooKeeper instance"} {
		if bytes.HasPrefix(answer, []byte(prefix)) {
			return true
		}
	}
	return bytes.HasPrefix(answer, notExecuted)
}

// probeTLS begins a TLS handshake. Any answer in TLS is sufficient, also a refusal.
func (d *dialer) probeTLS(ctx context.Context, server string) error {
	raw, err := d.config.dialTCP(ctx, server)
	if err != nil {
		return nil
	}
	defer raw.Close()
	// Nothing is sent over it, so the identity of the peer does not matter.
	err = tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	if err == nil || isAlert(err) {
		return errSpeaksTLS
	}
	return nil
}
