package integration_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// authority signs certificates for tests of TLS.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// issued is a certificate and its key, in PEM.
type issued struct{ cert, key []byte }

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// issue signs a certificate for clients and servers, with that common name and for the named
// hosts. It expires after life. A negative life makes an expired certificate.
func (a *authority) issue(life time.Duration, name string, hosts ...string) issued {
	a.t.Helper()
	return a.issueFor([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, life, name, hosts...)
}

// issueFor is issue for a certificate with that extended key usage.
func (a *authority) issueFor(usage []x509.ExtKeyUsage, life time.Duration, name string, hosts ...string) issued {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: serial(a.t), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usage,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return issued{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n.Add(n, big.NewInt(1))
}

// config returns the TLS configuration for connections that a test itself opens.
func (i issued) config(t testing.TB, trusted ...*authority) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(i.cert, i.key)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	for _, a := range trusted {
		c.RootCAs.AddCert(a.cert)
	}
	return c
}

// pemFiles is a folder with files that a test writes and replaces.
type pemFiles struct {
	t   testing.TB
	dir string
}

func newPEMFiles(t testing.TB) pemFiles { return pemFiles{t, t.TempDir()} }

// write replaces a file by a rename, as programs that rotate certificates do, so that a reader
// never sees half of it.
func (f pemFiles) write(name string, parts ...[]byte) string {
	f.t.Helper()
	var content []byte
	for _, p := range parts {
		content = append(content, p...)
	}
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// secured is an ensemble with a TLS port, and the files of its certificate.
type secured struct {
	*ensemble.Ensemble
	files pemFiles
}

// secureEnsemble starts one server whose TLS port has that certificate. The server accepts
// client certificates of these authorities. A certificate's subject is the client's identity.
func secureEnsemble(t testing.TB, server issued, clients []*authority, config ensemble.Config) secured {
	t.Helper()
	return secureEnsembleWith(t, "want", server, clients, config)
}

// secureEnsembleWith is secureEnsemble with the value of ssl.clientAuth.
func secureEnsembleWith(t testing.TB, clientAuth string, server issued, clients []*authority, config ensemble.Config) secured {
	t.Helper()
	ensemble.Require(t)
	e := secured{files: newPEMFiles(t)}
	var trusted [][]byte
	for _, a := range clients {
		trusted = append(trusted, a.pem)
	}
	config.TLS = &ensemble.TLS{KeyStore: e.show(server), TrustStore: e.files.write("clients.pem", trusted...), ClientAuth: clientAuth}
	config.MaxSessionTimeout = time.Minute
	config.Extra = append(config.Extra, "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider")
	e.Ensemble = ensemble.Start(t, config)
	return e
}

// show replaces the server's certificate. The server reads it at its next start.
func (e secured) show(i issued) (path string) { return e.files.write("server.pem", i.key, i.cert) }
