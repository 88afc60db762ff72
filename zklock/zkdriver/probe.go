package zkdriver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// probeWait is how long a probe waits for the answer of a ZooKeeper server, before
	// it asks in a way that others answer too.
	probeWait = 300 * time.Millisecond

	// probeAgain is how long a connector leaves a server alone that a probe has
	// found nothing permanent about, and probeSoon one that did not answer in time.
	probeAgain = 30 * time.Second
	probeSoon  = time.Second
)

// unanswered is the error of a connection on which there was no answer to the first
// message, the TLS or the ZooKeeper handshake: it was closed, or time ran out.
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

// verdict is what is known about a server, in a text of its own, and the errors that
// it matches.
type verdict struct {
	text string
	is   []error
}

// Error implements error.
func (v *verdict) Error() string { return v.text }

// Unwrap lets errors.Is find what it matches.
func (v *verdict) Unwrap() []error { return v.is }

var (
	// errSpeaksTLS is why no plain connection can be made.
	errSpeaksTLS error = &verdict{"it expects TLS, which takes zks:// and not zk://", []error{ErrNotZooKeeper, driver.ErrProtocol}}

	// errSpeaksPlain is why no TLS connection can be made.
	errSpeaksPlain = errors.New("it is a ZooKeeper server that speaks no TLS on this port, which takes zk:// and not zks://")

	// errSpeaksHTTP is why there is no answer, or another one than expected.
	errSpeaksHTTP error = &verdict{"connected, but got no ZooKeeper answer: it speaks HTTP", []error{ErrNotZooKeeper, driver.ErrProtocol}}

	// errNoQuorum is why a server closes connections that it has accepted.
	errNoQuorum = errors.New("closed the connection before it answered: it is a ZooKeeper server that has no quorum at the moment")
)

// shouldProbe reports whether it may help to look what a server is. A server that
// was found to be none of what a probe can tell is left alone for a while: one that
// is short of connections needs no more of them.
func (d *dialer) shouldProbe(server string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var u *unanswered
	if f, failed := d.errs[server]; !d.opening || !failed || f.kind == permanent || !errors.As(f.err, &u) {
		return false
	}
	return d.backoff.probe(server)
}

// probe looks what a server is that takes connections and does not answer, or closes
// them: a wrong scheme in the URL looks like that, and so does a web server. It is
// done on connections of its own and sends no secret. nil: it could not tell.
//
// It takes up to budget, which the attempt after it has once more: a server that is
// slow to answer an attempt is as slow here.
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

// probeText asks for the status of a ZooKeeper server in plain text, and makes of
// it something that a web server refuses in its own words.
func (d *dialer) probeText(ctx context.Context, server string) error {
	raw, err := d.dialTCP(ctx, server)
	if err != nil {
		return nil
	}
	defer raw.Close()
	answer := make([]byte, 64)
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
	}
	return nil
}

// isStatus reports whether an answer is that of a ZooKeeper server to a command of
// four letters, or its refusal to execute one.
func isStatus(answer []byte) bool {
	for _, prefix := range []string{"Zookeeper version", "This ZooKeeper instance", "srvr is not executed"} {
		if bytes.HasPrefix(answer, []byte(prefix)) {
			return true
		}
	}
	return false
}

// probeTLS begins a TLS handshake. Any answer in TLS will do, a refusal too.
func (d *dialer) probeTLS(ctx context.Context, server string) error {
	raw, err := d.dialTCP(ctx, server)
	if err != nil {
		return nil
	}
	defer raw.Close()
	// Nothing is sent over it, so it does not matter who the peer is.
	err = tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	var alert *net.OpError
	if err == nil || errors.As(err, &alert) && alert.Op == "remote error" {
		return errSpeaksTLS
	}
	return nil
}
