package zkdriver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// What is wrong with a certificate is said by what the client can read in it, and the certificate of a right use is not
// blamed for its use.
func TestHintsOnCertificates(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: tls.AlertError(46)}
	now := time.Now()
	shown := func(begins, ends time.Duration, uses ...x509.ExtKeyUsage) presentation {
		return presentation{asked: true, shown: &x509.Certificate{NotBefore: now.Add(begins), NotAfter: now.Add(ends), ExtKeyUsage: uses}}
	}
	for want, c := range map[string]struct {
		presentation
		err error
	}{
		"extended key usage has serverAuth": {presentation{}, x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}},
		"certificate has no host in its subjectAltName: give the server one that has DNS:zk1 there": {presentation{host: "zk1"}, x509.HostnameError{Certificate: &x509.Certificate{}, Host: "zk1"}},
		"is not for zk1: use a host that it names (zk2, 10.0.0.7), or": {presentation{host: "zk1"}, x509.HostnameError{Host: "zk1",
			Certificate: &x509.Certificate{DNSNames: []string{"zk2"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 7)}}}},
		"one that has IP:10.0.0.7 there":       {presentation{host: "10.0.0.7"}, x509.HostnameError{Certificate: &x509.Certificate{}, Host: "10.0.0.7"}},
		"speaks no TLS: correct the host":      {presentation{}, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}},
		"add the certificates between":         {shown(-time.Hour, time.Hour), alert},
		"lacks clientAuth":                     {shown(-time.Hour, time.Hour, x509.ExtKeyUsageServerAuth), alert},
		"or set the clock of this machine":     {shown(time.Hour, 2*time.Hour, x509.ExtKeyUsageServerAuth), alert},
		"the servers' ssl.trustStore":          {shown(-time.Hour, time.Hour), alert},
		"servers' ssl.trustStore, and their c": {shown(-time.Hour, time.Hour, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), alert},
		"the servers' ssl.trustStore, and the": {shown(-time.Hour, time.Hour, x509.ExtKeyUsageAny), alert},
	} {
		if got := c.hint(fmt.Errorf("handshake: %w", c.err)); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
