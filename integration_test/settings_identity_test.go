package integration_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// TestServerThatRequiresACertificate: with ssl.clientAuth=need, a server accepts clients with
// certificates only. An identity by certificate owns its locks. A client without one is refused
// at once, and the error names the keys that are missing.
func TestServerThatRequiresACertificate(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	files := newPEMFiles(t)
	ca := files.write("ca.pem", ours.pem)
	client := ours.issue(time.Hour, "service")
	cert, key := files.write("client.pem", client.cert), files.write("client.key", client.key)
	e := secureEnsembleWith(t, "need", ours.issue(time.Hour, "server", "localhost"), []*authority{ours}, ensemble.Config{})
	hosts := byName(t, e.SecureHosts())

	c := dialTLS(t, "", hosts, quick("tls_ca", ca, "tls_cert", cert, "tls_key", key, "acl", "creator"))
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	l := acquire(t, c.Mutex("x"))
	raw := dialRawTLS(t, e.SecureHosts(), client.config(t, ours))
	acl, _, err := raw.GetACL(c.Mutex("x").Path())
	if err != nil || len(acl) != 1 || acl[0].Scheme != "x509" || !strings.HasPrefix(acl[0].ID, "CN=service") {
		t.Errorf("the access list has %d entries %v, %v, want one of the certificate", len(acl), schemes(acl), err)
	}
	release(t, l)

	for verb, call := range calls(dialTLS(t, "", hosts, quick("tls_ca", ca, "connect_timeout", patience.String()))) {
		began := time.Now()
		err := call(within(t))
		if !errors.Is(err, zklock.ErrUnavailable) || !errors.Is(err, driver.ErrTLS) {
			t.Errorf("%s: %v, want ErrUnavailable and ErrTLS", verb, err)
			continue
		}
		saysAll(t, err, []string{hosts, "demands a client certificate", "tls_cert", "tls_key"})
		if d := time.Since(began); d > atOnce {
			t.Errorf("%s: refused after %v, want at once", verb, d)
		}
	}
}

// TestServerThatRequiresX509: servers that demand the scheme x509 of every session, also on the
// plain port, serve clients with a certificate. Their error for others says what is missing.
func TestServerThatRequiresX509(t *testing.T) {
	long.Test(t, "servers with certificates of their own")
	ours := newAuthority(t, "ours")
	files := newPEMFiles(t)
	client := ours.issue(time.Hour, "service")
	identity := []string{"tls_ca", files.write("ca.pem", ours.pem), "tls_cert", files.write("client.pem", client.cert), "tls_key", files.write("client.key", client.key)}
	e := secureEnsemble(t, ours.issue(time.Hour, "server", "localhost"), []*authority{ours},
		ensemble.Config{Extra: []string{"enforce.auth.enabled=true", "enforce.auth.schemes=x509"}})
	since(t, e.Ensemble, "3.7", "servers have this setting since")
	hosts := byName(t, e.SecureHosts())
	c := dialTLS(t, "", hosts, quick(identity...))
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	release(t, acquire(t, c.Mutex("x")))

	for name, stranger := range map[string]*zklock.Client{
		"TLS without a certificate": dialTLS(t, "", hosts, quick(append(identity[:2:2], "connect_timeout", "5s")...)),
		"the plain port":            dial(t, e.Hosts(), quick("connect_timeout", "5s")),
	} {
		for verb, call := range calls(stranger) {
			err := call(within(t))
			if !errors.Is(err, driver.ErrAuthFailed) {
				t.Errorf("%s: %s: %v, want ErrAuthFailed", name, verb, err)
				continue
			}
			saysAll(t, err, []string{"client certificate", "tls_cert", "tls_key"})
		}
	}
}
