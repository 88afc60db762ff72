package zkdriver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// presentation is what client and server have shown to each other in a TLS handshake, for errors.
type presentation struct {
	host  string            // the name that is expected in the server's certificate
	ca    bool              // the URL has a file with authorities
	asked bool              // the server has asked for a client certificate
	shown *x509.Certificate // the client's; nil: none
}

// Alerts of servers that have no version or cipher suite in common with the client.
const (
	alertHandshakeFailure     = 40
	alertProtocolVersion      = 70
	alertInsufficientSecurity = 71
)

// explain adds to an error of a handshake which key of the URL, or which setting of the servers, it is about.
func (p presentation) explain(err error) error {
	if hint := p.hint(err); hint != "" {
		return fmt.Errorf("%s: %w", hint, err)
	}
	return err
}

func (p presentation) hint(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknown) && !p.ca:
		return fmt.Sprintf("this system does not know the authority of the server's certificate%s: set the key %q to a file with its certificate", issuer(unknown.Cert), keyTLSCA)
	case errors.As(err, &unknown):
		return fmt.Sprintf("the file of the key %q lacks the authority of the server's certificate%s", keyTLSCA, issuer(unknown.Cert))
	case errors.As(err, &name):
		hosts := namesIn(name.Certificate)
		if len(hosts) == 0 { // the common name does not count
			kind := "DNS"
			if net.ParseIP(p.host) != nil {
				kind = "IP"
			}
			return fmt.Sprintf("the server's certificate has no host in its subjectAltName: give the server one that has %s:%s there", kind, p.host)
		}
		return fmt.Sprintf("the server's certificate is not for %s: use a host that it names (%s), or set the key %q to one", p.host, strings.Join(hosts, ", "), keyTLSServerName)
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return "the server's certificate is not one for servers: give the server one whose extended key usage has serverAuth"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the server's certificate is valid from %s to %s: renew it, or set the clock of this machine", date(invalid.Cert.NotBefore), date(invalid.Cert.NotAfter))
	case errors.As(err, &record):
		return "what listens there speaks no TLS: correct the host and the port"
	case !isAlert(err):
		return ""
	case p.asked && p.shown == nil:
		return fmt.Sprintf("the server demands a client certificate, and the URL has none: set the keys %q and %q", keyTLSCert, keyTLSKey)
	case p.asked && (time.Now().After(p.shown.NotAfter) || time.Now().Before(p.shown.NotBefore)):
		return fmt.Sprintf("the server refuses the client certificate of the key %q, which is valid from %s to %s: renew it, or set the clock of this machine", keyTLSCert, date(p.shown.NotBefore), date(p.shown.NotAfter))
	case p.asked && !isForClients(p.shown):
		return fmt.Sprintf("the server refuses the client certificate of the key %q, whose extended key usage lacks clientAuth: use one for clients", keyTLSCert)
	case p.asked:
		return fmt.Sprintf("the server refuses the client certificate of the key %q%s: compare that with the servers' ssl.trustStore, and their clocks, and add the certificates between, if there are any, to the file", keyTLSCert, issuer(p.shown))
	case alertOf(err, alertHandshakeFailure), alertOf(err, alertProtocolVersion), alertOf(err, alertInsufficientSecurity):
		return "this client and the server have no TLS version or no cipher suite in common: compare the servers' ssl.protocol, ssl.enabledProtocols and ssl.ciphersuites; this client speaks TLS 1.2 and 1.3"
	}
	return ""
}

// isForClients reports whether the extended key usage of a certificate, if it has one, allows clients.
func isForClients(c *x509.Certificate) bool {
	return len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) == 0 || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// namesIn returns the hosts that a certificate is for.
func namesIn(c *x509.Certificate) (hosts []string) {
	hosts = slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// issuer returns the name of the issuer of a certificate, as far as that is known.
func issuer(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(", which %q has issued", c.Issuer)
}

// date returns a time of a certificate.
func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// isAlert reports whether an error is an alert from the peer: an OpError that only its Op
// distinguishes from others.
func isAlert(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error"
}

// alertOf reports whether an error is that alert from the peer. Package tls does not export the type of alerts.
func alertOf(err error, alert tls.AlertError) bool {
	var from *net.OpError
	return isAlert(err) && errors.As(err, &from) && from.Err.Error() == alert.Error()
}
