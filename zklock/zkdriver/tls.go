package zkdriver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/zklock/go-zklock/zklock/driver"
)

// tlsFiles says where the parts of a TLS configuration are.
type tlsFiles struct {
	ca, cert, key string // file names, "" if not given
	serverName    string // "" means the host that is dialled
	skipVerify    bool
}

// parseTLS reads the tls keys and checks that their files can be used now.
func parseTLS(u driver.URL) (*tlsFiles, error) {
	f := &tlsFiles{
		ca:         u.Params.Get(keyTLSCA),
		cert:       u.Params.Get(keyTLSCert),
		key:        u.Params.Get(keyTLSKey),
		serverName: u.Params.Get(keyTLSServerName),
	}
	if (f.cert == "") != (f.key == "") {
		return nil, fmt.Errorf("zkdriver: keys %q and %q go together", keyTLSCert, keyTLSKey)
	}
	var err error
	if f.skipVerify, err = boolParam(u, keyTLSSkipVerify); err != nil {
		return nil, err
	}
	if _, err := f.config("checked-at-open"); err != nil {
		return nil, err
	}
	if f.skipVerify {
		loggerOf(u.Logger).Warn("zkdriver: " + keyTLSSkipVerify + "=true: anybody on the way can pass for the ZooKeeper servers, read the password and grant locks; it is for tests only")
	}
	return f, nil
}

// config reads the files and makes the configuration for one connection.
func (f *tlsFiles) config(host string) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         host,
		InsecureSkipVerify: f.skipVerify, // asked for by its name in the URL
	}
	if f.serverName != "" {
		c.ServerName = f.serverName
	}
	if f.ca != "" {
		pem, err := readFile(keyTLSCA, f.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("zkdriver: key %q: %s holds no PEM certificate", keyTLSCA, f.ca)
		}
	}
	if f.cert != "" {
		cert, err := readFile(keyTLSCert, f.cert)
		if err != nil {
			return nil, err
		}
		key, err := readFile(keyTLSKey, f.key)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("zkdriver: keys %q and %q: %w", keyTLSCert, keyTLSKey, err)
		}
		// Shown to whoever asks: one that is of none of the authorities which a
		// server lists would be kept back otherwise, and the connection go on
		// without the identity that was meant.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c, nil
}

// wrap makes a TLS connection to server out of a TCP one. The name verified is
// the one that was dialled, never the address it resolved to.
func (f *tlsFiles) wrap(ctx context.Context, raw net.Conn, server string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	c, err := f.config(host)
	if err != nil {
		return nil, err
	}
	asked := c.GetClientCertificate == nil
	if show := c.GetClientCertificate; show != nil {
		c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return show(r)
		}
	}
	conn := tls.Client(raw, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		var record tls.RecordHeaderError
		if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
			return nil, errSpeaksHTTP
		}
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	if !asked {
		return nil, errNotAsked
	}
	return conn, nil
}

// errNotAsked is the end of a connection that would go on without the identity
// that was meant.
var errNotAsked = errors.New("TLS handshake: the server has not asked for a client certificate (its ssl.clientAuth is none): without one nobody has the identity of key \"" + keyTLSCert + "\"; change the server, or leave the key out")

// permanentTLS reports whether a TLS failure is one that the next attempt will
// meet again: somebody has to change a certificate or the URL.
func permanentTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		alert        *net.OpError
	)
	// An alert from the peer is an OpError that can be told by its Op only.
	remote := errors.As(err, &alert) && alert.Op == "remote error"
	return remote || errors.Is(err, errNotAsked) || errors.Is(err, errSpeaksPlain) || errors.As(err, &verification) || errors.As(err, &record)
}
