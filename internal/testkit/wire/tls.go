package wire

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
	"time"
)

// Encrypt makes the servers speak TLS, and URL and Connector use it. The servers have one certificate, for their
// addresses and for names. That of its authority is written to a file in dir, where clients read it. It panics
// if that cannot be done.
func (n *Network) Encrypt(dir string, names ...string) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "servers"}, DNSNames: names,
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range n.hosts {
		leaf.IPAddresses = append(leaf.IPAddresses, net.TCPAddrFromAddrPort(address(h.index)).IP)
	}
	signer, key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	signed := must(x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer))
	n.ca = filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(n.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600); err != nil {
		panic(err)
	}
	n.tls = &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{must(x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, signer))},
		PrivateKey:  key,
	}}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
