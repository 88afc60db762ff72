package zkdriver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/zklock/go-zklock/zklock/driver"
)

// tlsFiles holds the names of the files of a TLS configuration, and its other
// settings.
type tlsFiles struct {
	ca, cert, key string // file names, "" if not given
	serverName    string // "" means the host that is dialled
	skipVerify    bool
}

// parseTLS reads the tls keys and checks that their files can be used at present.
func parseTLS(u driver.URL) (*tlsFiles, error) {
	f := &tlsFiles{
		ca:         u.Params.Get(keyTLSCA),
		cert:       u.Params.Get(keyTLSCert),
		key:        u.Params.Get(keyTLSKey),
		serverName: u.Params.Get(keyTLSServerName),
	}
	if (f.cert == "") != (f.key == "") {
		return nil, fmt.Errorf("zkdriver: keys %q and %q go together: set both or neither", keyTLSCert, keyTLSKey)
	}
	var err error
	if f.skipVerify, err = boolParam(u, keyTLSSkipVerify); err != nil {
		return nil, err
	}
	if _, err := f.config("checked-at-open"); err != nil {
		return nil, err
	}
	if f.skipVerify {
		loggerOf(u.Logger).Warn("zkdriver: " + keyTLSSkipVerify + "=true: certificates are not verified, so an attacker on the network can pose as the ZooKeeper servers, read the password and grant locks; use it for tests only")
	}
	return f, nil
}

// config reads the files and returns the configuration for one connection.
func (f *tlsFiles) config(host string) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         host,
		InsecureSkipVerify: f.skipVerify, // only if the URL asks for it explicitly
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
			return nil, fmt.Errorf("zkdriver: key %q: %s contains no PEM certificate", keyTLSCA, fileShown(keyTLSCA, f.ca))
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
		if err != nil && bytes.Contains(key, []byte("ENCRYPTED")) {
			return nil, fmt.Errorf("zkdriver: key %q: the file is encrypted, and no key of the URL has its passphrase: decrypt it, as with openssl pkey", keyTLSKey)
		}
		if err != nil {
			return nil, fmt.Errorf("zkdriver: keys %q and %q: %w", keyTLSCert, keyTLSKey, err)
		}
		// Always present the certificate. By default crypto/tls holds it back if its authority
		// is not in the server's list, and the connection would go on without the intended
		// identity.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c, nil
}

// wrap makes a TLS connection to server out of a TCP one. It verifies the host name that was
// dialled, never the address that DNS gave for it.
func (f *tlsFiles) wrap(ctx context.Context, raw net.Conn, server string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	c, err := f.config(host)
	if err != nil {
		return nil, err
	}
	show := c.GetClientCertificate
	p := presentation{host: c.ServerName, ca: f.ca != ""}
	c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if p.asked = true; show == nil {
			return &tls.Certificate{}, nil // none
		}
		cert, err := show(r)
		if err == nil {
			p.shown = cert.Leaf
		}
		return cert, err
	}
	conn := tls.Client(raw, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		var record tls.RecordHeaderError
		if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
			return nil, errSpeaksHTTP
		}
		return nil, fmt.Errorf("TLS handshake: %w", p.explain(err))
	}
	if p.asked {
		return asked{conn, p}, nil
	}
	if show != nil {
		return nil, errNotAsked
	}
	return conn, nil
}

// asked is a TLS connection whose server has asked for a client certificate. In TLS 1.3 the server refuses that, or
// that there is none, only after the client's handshake.
type asked struct {
	*tls.Conn
	presentation
}

// Read implements net.Conn.
func (a asked) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if err != nil {
		err = a.explain(err)
	}
	return n, err
}

// errNotAsked ends a connection that would go on without the intended identity.
var errNotAsked = errors.New("TLS handshake: the server has not asked for a client certificate (its ssl.clientAuth is none), so the session would not have the identity of key \"" + keyTLSCert + "\": change the server's setting, or leave the key out")

// permanentTLS reports whether the next attempt will meet the same TLS failure, until
// a certificate or the URL is changed.
func permanentTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
	)
	return isAlert(err) || errors.Is(err, errNotAsked) || errors.Is(err, errSpeaksPlain) || errors.As(err, &verification) || errors.As(err, &record)
}
