package ensemble_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// selfSigned makes a self-signed certificate for 127.0.0.1. It writes two files: store has
// the key and the certificate, authority has the certificate alone.
func selfSigned(t *testing.T) (store, authority string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	cert := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pair, err = tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	store, authority = filepath.Join(t.TempDir(), "server.pem"), filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(store, append(keyPEM, certPEM...), 0o600))
	must(t, os.WriteFile(authority, certPEM, 0o600))
	return store, authority, pair
}

func TestTLSPortDemandsAClientCertificate(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	store, authority, pair := selfSigned(t)
	e := ensemble.Start(t, ensemble.Config{TLS: &ensemble.TLS{KeyStore: store, TrustStore: authority, ClientAuth: "need"}})
	roots := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	must(t, err)
	roots.AddCert(leaf)
	config := &tls.Config{RootCAs: roots}

	// The server refuses after the client's side of the handshake is complete.
	nc, err := tls.Dial("tcp", e.SecureHosts(), config)
	if err == nil {
		nc.SetReadDeadline(time.Now().Add(patience))
		_, err = nc.Read(make([]byte, 1))
		nc.Close()
	}
	if err == nil {
		t.Error("a client without a certificate was accepted")
	}

	config.Certificates = []tls.Certificate{pair}
	conn, _, err := zk.Connect([]string{e.SecureHosts()}, 5*time.Second, zk.WithLogger(quiet{}),
		zk.WithDialer(func(network, addr string, timeout time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, addr, config)
		}))
	must(t, err)
	defer conn.Close()
	eventually(t, "a node is created over TLS", func() bool {
		_, err := conn.Create("/tls", nil, 0, zk.WorldACL(zk.PermAll))
		return err == nil || err == zk.ErrNodeExists
	})
}
