package zkdriver_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// pki is an authority and a certificate it has signed, in PEM.
type pki struct{ ca, cert, key []byte }

// newPKI makes a certificate for a host name. It can be used by servers and by
// clients.
func newPKI(t *testing.T, host string) pki {
	t.Helper()
	sign := func(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	generate := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority " + rand.Text()},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	caKey, key := generate(), generate()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pki{
		ca:   sign(authority, authority, caKey, caKey),
		cert: sign(leaf, authority, key, caKey),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}
}

// newTLSPeer is newPeer with TLS. If mutual is true, clients need a certificate.
func newTLSPeer(t *testing.T, k pki, mutual bool, script func(l *link)) *peer {
	t.Helper()
	return newTLSPeerUpTo(t, tls.VersionTLS13, k, mutual, script)
}

// newTLSPeerUpTo is newTLSPeer with the newest version of TLS that the peer speaks.
func newTLSPeerUpTo(t *testing.T, version uint16, k pki, mutual bool, script func(l *link)) *peer {
	t.Helper()
	pair, err := tls.X509KeyPair(k.cert, k.key)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: x509.NewCertPool(), MaxVersion: version}
	c.ClientCAs.AppendCertsFromPEM(k.ca)
	if mutual {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return servePeer(t, tls.NewListener(ln, c), script)
}

// tlsURL returns the URL of a peer with a host name, and with pairs of keys and
// values.
func tlsURL(t *testing.T, p *peer, host string, pairs ...string) driver.URL {
	t.Helper()
	_, port, err := net.SplitHostPort(p.addr())
	if err != nil {
		t.Fatal(err)
	}
	u := driver.URL{Scheme: "zks", Hosts: []string{net.JoinHostPort(host, port)}, Params: url.Values{}}
	for i := 0; i < len(pairs); i += 2 {
		u.Params.Set(pairs[i], pairs[i+1])
	}
	return u
}

func TestTLS(t *testing.T) {
	dir, k, other := t.TempDir(), newPKI(t, "localhost"), newPKI(t, "localhost")
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, cert, key := file("ca", k.ca), file("cert", k.cert), file("key", k.key)
	otherCA, strangerCert, strangerKey := file("other", other.ca), file("stranger", other.cert), file("stranger key", other.key)
	for _, c := range []struct {
		name   string
		mutual bool
		host   string
		pairs  []string
		check  func(error) bool // nil if connecting succeeds
	}{
		{"known authority", false, "localhost", []string{"tls_ca", ca}, nil},
		{"system's authorities", false, "localhost", nil, is[x509.UnknownAuthorityError]},
		{"unknown authority", false, "localhost", []string{"tls_ca", otherCA}, is[x509.UnknownAuthorityError]},
		{"address instead of the name", false, "127.0.0.1", []string{"tls_ca", ca}, is[x509.HostnameError]},
		{"address with the name given", false, "127.0.0.1", []string{"tls_ca", ca, "tls_server_name", "localhost"}, nil},
		{"another name given", false, "localhost", []string{"tls_ca", ca, "tls_server_name", "zk1"}, is[x509.HostnameError]},
		{"not verified", false, "127.0.0.1", []string{"tls_insecure_skip_verify", "true"}, nil},
		{"client certificate", true, "localhost", []string{"tls_ca", ca, "tls_cert", cert, "tls_key", key}, nil},
		{"client certificate of another authority", true, "localhost", []string{"tls_ca", ca, "tls_cert", strangerCert, "tls_key", strangerKey}, func(err error) bool {
			return is[*net.OpError](err) && strings.Contains(err.Error(), "unknown certificate authority") && // the certificate was presented, and refused
				strings.Contains(err.Error(), `refuses the client certificate of the key "tls_cert", which "CN=authority `)
		}},
		{"client certificate that the server does not ask for", false, "localhost", []string{"tls_ca", ca, "tls_cert", cert, "tls_key", key}, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "has not asked for a client certificate")
		}},
		{"no client certificate", true, "localhost", []string{"tls_ca", ca}, func(err error) bool {
			return is[*net.OpError](err) && strings.Contains(err.Error(), `demands a client certificate, and the URL has none: set the keys "tls_cert" and "tls_key"`)
		}},
		{"no client certificate, before TLS 1.3", true, "localhost", []string{"tls_ca", ca}, func(err error) bool {
			return is[*net.OpError](err) && strings.Contains(err.Error(), "demands a client certificate")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			version := uint16(tls.VersionTLS13)
			if strings.Contains(c.name, "before TLS 1.3") {
				version = tls.VersionTLS12
			}
			p := newTLSPeerUpTo(t, version, k, c.mutual, (*link).work)
			start := time.Now()
			s, err := open(t, tlsURL(t, p, c.host, c.pairs...)).Connect(within(t, 4*atOnce), 4*time.Second)
			if took := time.Since(start); took > atOnce {
				t.Errorf("Connect took %v", took)
			}
			if c.check == nil {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Get(within(t, 5*time.Second), "/a"); err != nil {
					t.Error(err)
				}
				if err := s.Close(within(t, 5*time.Second)); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !c.check(err) {
				t.Errorf("error %v", err)
			}
			matches(t, err, driver.ErrNotSent, driver.ErrTLS)
		})
	}
}

// Verification is on by default. If the URL turns it off, the driver logs that, to the client's
// logger if it has one, else to the process's default logger.
func TestSkippedVerificationIsLogged(t *testing.T) {
	var byDefault, configured bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&byDefault, nil)))
	defer slog.SetDefault(before)
	logger := zklock.WithLogger(slog.New(slog.NewTextHandler(&configured, nil)))
	for _, c := range []struct {
		key   string
		opts  []zklock.Option
		in    *bytes.Buffer // where the warning is logged; nil: nowhere
		other *bytes.Buffer
	}{
		{"tls_insecure_skip_verify=true", nil, &byDefault, &configured},
		{"tls_insecure_skip_verify=true", []zklock.Option{logger}, &configured, &byDefault},
		{"tls_insecure_skip_verify=true", []zklock.Option{logger, zklock.WithLogger(nil)}, nil, nil},
		{"tls_insecure_skip_verify=false", nil, nil, nil},
		{"", nil, nil, nil},
	} {
		byDefault.Reset()
		configured.Reset()
		client, err := zklock.Open("zks://zk1/locks?"+c.key, c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		switch {
		case c.in == nil:
			if n := byDefault.Len() + configured.Len(); n > 0 {
				t.Errorf("with %q: logged %q %q", c.key, byDefault.String(), configured.String())
			}
		case !strings.Contains(c.in.String(), "level=WARN") || !strings.Contains(c.in.String(), "tls_insecure_skip_verify") || c.other.Len() > 0:
			t.Errorf("with %q and %d options: logged %q, and %q to the other logger", c.key, len(c.opts), c.in.String(), c.other.String())
		}
	}
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// A replaced certificate is used from the next connection on.
func TestTLSFilesAreReadForEachConnection(t *testing.T) {
	k, next := newPKI(t, "localhost"), newPKI(t, "localhost")
	ca := filepath.Join(t.TempDir(), "ca")
	write := func(b []byte) {
		if err := os.WriteFile(ca, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(next.ca)
	p := newTLSPeer(t, k, false, (*link).work)
	c := open(t, tlsURL(t, p, "localhost", "tls_ca", ca))
	if _, err := c.Connect(within(t, 5*time.Second), 4*time.Second); !is[x509.UnknownAuthorityError](err) {
		t.Fatalf("error %v", err)
	}
	write(k.ca)
	s, err := c.Connect(within(t, 5*time.Second), 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	shut(s)
}

// With a wrong scheme in the URL, the error says which scheme to use.
func TestSchemeMistaken(t *testing.T) {
	plain := newPeer(t, (*link).work)
	_, err := open(t, tlsURL(t, plain, "localhost")).Connect(within(t, time.Second), 4*time.Second)
	if err == nil || errors.Is(err, driver.ErrConnLoss) {
		t.Errorf("zks:// to a plain port: %v", err)
	}
	secure := newTLSPeer(t, newPKI(t, "localhost"), false, (*link).work)
	_, err = open(t, secure.url()).Connect(within(t, 5*time.Second), 4*time.Second)
	matches(t, err, zkdriver.ErrNotZooKeeper)
	if err != nil && !strings.Contains(err.Error(), "it expects TLS: use zks:// instead of zk://") {
		t.Errorf("zk:// to a port of TLS: %v", err)
	}
	// A ZooKeeper server takes the TLS handshake for a giant frame, and closes the
	// connection.
	closes := newPeer(t, func(*link) {})
	_, err = open(t, tlsURL(t, closes, "localhost")).Connect(within(t, 5*time.Second), 4*time.Second)
	matches(t, err, zkdriver.ErrNotZooKeeper)
	if err != nil && !strings.Contains(err.Error(), "it speaks no TLS: use zk:// instead of zks://") {
		t.Errorf("zks:// to a port that closes: %v", err)
	}
}
