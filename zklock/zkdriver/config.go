package zkdriver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/internal/netcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// The URL's query keys.
const (
	keyPasswordFile  = "password_file"
	keyAllowKeeper   = "allow_keeper"
	keyAuthPlaintext = "auth_plaintext"
	keyTLSCA         = "tls_ca"
	keyTLSCert       = "tls_cert"
	keyTLSKey        = "tls_key"
	keyTLSServerName = "tls_server_name"
	keyTLSSkipVerify = "tls_insecure_skip_verify"
)

// keys lists the query keys, sorted, as Driver.Keys requires.
var keys = []string{
	keyAllowKeeper, keyAuthPlaintext, keyPasswordFile, keySASL, keyTLSCA, keyTLSCert, keyTLSSkipVerify, keyTLSKey, keyTLSServerName,
}

const (
	schemePlain = "zk"
	schemeTLS   = "zks"

	// defaultPort is ZooKeeper's registered port for clients.
	defaultPort = "2181"

	// passwordEnv names the environment variable that may hold the password. With it,
	// the password need not be in a URL that ends up in process listings.
	passwordEnv = "ZKLOCK_PASSWORD"
)

// config holds the settings of a URL, checked.
type config struct {
	servers []string           // host:port, IPv6 in brackets; never empty
	creds   *credentials       // nil if the URL has no user, or if the user is that of the SASL mechanism
	sasl    *sasl              // nil if connections do not authenticate by SASL
	tls     *tlsFiles          // nil for scheme zk
	logger  *slog.Logger       // nil: slog's default
	network netcontrol.Network // nil: the machine's
	names   *names             // never nil

	allowKeeper bool // sessions of ClickHouse Keeper are used

	// loopbackOnly means that the password would be sent unencrypted, and that the
	// URL does not allow sending it to another machine.
	loopbackOnly bool
}

// parse checks a URL and the files that it names, without network I/O. Its errors
// never contain the password.
func parse(u driver.URL) (*config, error) {
	if u.Scheme != schemePlain && u.Scheme != schemeTLS {
		return nil, fmt.Errorf("zkdriver: unknown scheme %s: use zk or zks", nearest.Shown(u.Scheme))
	}
	for key, values := range u.Params {
		if !slices.Contains(keys, key) {
			return nil, fmt.Errorf("zkdriver: %w", nearest.Unknown(key, keys))
		}
		if len(values) != 1 {
			return nil, fmt.Errorf("zkdriver: key %q needs exactly one value, has %d", key, len(values))
		}
		if values[0] == "" {
			return nil, fmt.Errorf("zkdriver: key %q has no value: give it one, or leave it out", key)
		}
		if u.Scheme == schemePlain && strings.HasPrefix(key, "tls_") {
			return nil, fmt.Errorf("zkdriver: key %q needs TLS: use zks:// instead of zk://", key)
		}
	}
	if len(u.Hosts) == 0 {
		return nil, errors.New("zkdriver: the URL has no host: add one after ://, as in zk://host:2181/root")
	}
	c := &config{logger: u.Logger, network: netcontrol.In(u.Options)}
	for i, h := range u.Hosts {
		server, err := hostPort(h)
		if err != nil {
			return nil, fmt.Errorf("zkdriver: host %d of the list: %w", i+1, err)
		}
		c.servers = append(c.servers, server)
	}
	c.names = newNames(c.servers, c.network)
	var err error
	if c.sasl, err = parseSASL(u); err != nil {
		return nil, err
	}
	if c.sasl == nil || !c.sasl.inURL {
		if c.creds, err = parseCredentials(u); err != nil {
			return nil, err
		}
	}
	if c.allowKeeper, err = boolParam(u, keyAllowKeeper); err != nil {
		return nil, err
	}
	plaintext, err := boolParam(u, keyAuthPlaintext)
	if err != nil {
		return nil, err
	}
	if c.loopbackOnly = c.creds != nil && u.Scheme == schemePlain && !plaintext; c.loopbackOnly {
		// The digest scheme sends the password itself: an attacker that reads it
		// controls the locks.
		for _, s := range c.servers {
			if !loopback(s) {
				return nil, fmt.Errorf("zkdriver: the user's password would go to %s unencrypted: use zks://, or allow it with %s=true", s, keyAuthPlaintext)
			}
		}
	}
	if u.Scheme == schemeTLS {
		if c.tls, err = parseTLS(u); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// hostPort checks one host of the URL and adds the default port if it has none. A
// host name is not resolved here: it is resolved, and with TLS verified, again at
// each dial. Errors do not show the host: it may have a password in it.
func hostPort(h string) (string, error) {
	host, port := h, defaultPort
	switch {
	case strings.HasPrefix(h, "[") && strings.HasSuffix(h, "]"):
		host = h[1 : len(h)-1]
	case strings.Contains(h, ":"):
		var err error
		if host, port, err = net.SplitHostPort(h); err != nil {
			return "", errHost
		}
	}
	if at := strings.Index(host, "%"); at >= 0 { // the zone of an IPv6 address, which a URL has behind %25
		zone, escaped := strings.CutPrefix(host[at:], "%25")
		if !escaped || zone == "" || !strings.Contains(host[:at], ":") || strings.Contains(zone, "%") {
			return "", errZone
		}
		host = host[:at] + "%" + zone
	}
	if host == "" || strings.ContainsAny(host, "[]/@ ") {
		return "", errHost
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("its port is not a number from 1 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}

var (
	errHost = errors.New("want host, host:port or [IPv6]:port")
	errZone = errors.New("want the zone of an IPv6 address behind %25, as in [fe80::1%25eth0]:port")
)

// loopback reports whether a server of the URL is meant to be on this machine. onlyLoopback
// checks the name's address when it is dialled.
func loopback(server string) bool {
	host, _, _ := net.SplitHostPort(server)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// boolParam reads a key that is true or false. A missing key is false.
func boolParam(u driver.URL, key string) (bool, error) {
	if !u.Params.Has(key) {
		return false, nil
	}
	v, err := strconv.ParseBool(u.Params.Get(key))
	if err != nil {
		// The error does not show the value: the user can see it in the URL, and it
		// may be a misplaced password.
		return false, fmt.Errorf("zkdriver: key %q: want true or false", key)
	}
	return v, nil
}
