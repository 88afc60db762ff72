package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// defaultPort is the port of a host without one.
const defaultPort = "2181"

// maxReply limits the reply to a four-letter word.
const maxReply = 1 << 20

var errNotAllowed = errors.New("the server does not allow")

// address returns the host and the port of a host in a URL.
func address(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
	}
	return host
}

// ask sends one of ZooKeeper's four-letter words, on a connection of its own, and returns the
// reply.
func ask(ctx context.Context, u driver.URL, host, word string) (string, error) {
	conn, err := dial(ctx, u, address(host))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(serverLimit / 2)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(io.LimitReader(conn, maxReply))
	if len(reply) == 0 {
		return "", fmt.Errorf("no reply to %s: %v", word, err)
	}
	if strings.Contains(string(reply), "not in the whitelist") {
		return "", fmt.Errorf("%w %s", errNotAllowed, word)
	}
	return string(reply), nil
}

// dial connects to a server as a client of the URL does: with TLS, and its certificates, for
// the scheme zks.
func dial(ctx context.Context, u driver.URL, address string) (net.Conn, error) {
	var plain net.Dialer
	if u.Scheme != "zks" {
		return plain.DialContext(ctx, "tcp", address)
	}
	host, _, _ := net.SplitHostPort(address)
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if name := u.Params.Get("tls_server_name"); name != "" {
		config.ServerName = name
	}
	config.InsecureSkipVerify = u.Params.Get("tls_insecure_skip_verify") == "true" // the URL asks for it
	if file := u.Params.Get("tls_ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("tls_ca has no certificate")
		}
	}
	if file := u.Params.Get("tls_cert"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, u.Params.Get("tls_key"))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return (&tls.Dialer{NetDialer: &plain, Config: config}).DialContext(ctx, "tcp", address)
}
