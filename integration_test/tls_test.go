package integration_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// byName replaces the IP address in a server's address by the name in its certificate.
func byName(t testing.TB, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("localhost", port)
}

// dialTLS opens a client with zks://; user is "" or "user:password@".
func dialTLS(t testing.TB, user, hosts string, params url.Values, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	opts = append([]zklock.Option{zklock.WithLogger(searchedLog()), zklock.WithHooks(searchedHooks())}, opts...)
	c, err := zklock.Open("zks://"+user+hosts+rootOf(t)+"?"+params.Encode(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		searchStats(c)
		_ = c.Close() // an error of a client that never had a session is expected
	})
	return c
}

// dialRawTLS opens a plain session over TLS, with the identity of a certificate.
func dialRawTLS(t testing.TB, addr string, config *tls.Config) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithDialer(func(network, addr string, timeout time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, addr, config)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	eventually(t, "the raw client has a session", func() bool { return conn.State() == zk.StateHasSession })
	return conn
}

func is[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// TestServerIsVerified: the server's certificate must be from a trusted authority, for the name
// that the client dialled, and not expired. Otherwise the client sends no request. The server
// verifies the client's certificate in the same way. A call that fails, fails at once.
func TestServerIsVerified(t *testing.T) {
	t.Parallel()
	ours, other := newAuthority(t, "ours"), newAuthority(t, "other")
	files := newPEMFiles(t)
	ca, otherCA := files.write("ca.pem", ours.pem), files.write("other.pem", other.pem)
	good := secureEnsemble(t, ours.issue(time.Hour, "server", "localhost"), []*authority{ours}, ensemble.Config{})
	expired := secureEnsemble(t, ours.issue(-time.Minute, "server", "localhost"), []*authority{ours}, ensemble.Config{})
	named, addressed, late := byName(t, good.SecureHosts()), good.SecureHosts(), byName(t, expired.SecureHosts())
	showing := func(name string, i issued) []string {
		return []string{"tls_ca", ca, "tls_cert", files.write(name+".pem", i.cert), "tls_key", files.write(name+".key", i.key)}
	}
	byServer := func(err error) bool { return errors.Is(err, driver.ErrTLS) && is[*net.OpError](err) }
	invalid := func(reason x509.InvalidReason) func(error) bool {
		return func(err error) bool {
			var e x509.CertificateInvalidError
			return errors.As(err, &e) && e.Reason == reason
		}
	}
	for _, c := range []struct {
		name, hosts string
		keys        []string
		refused     func(error) bool // recognizes the error; nil: the client works
	}{
		{"right authority, right name", named, []string{"tls_ca", ca}, nil},
		{"wrong authority", named, []string{"tls_ca", otherCA}, is[x509.UnknownAuthorityError]},
		{"the system's authorities", named, nil, is[x509.UnknownAuthorityError]},
		{"wrong name: the address", addressed, []string{"tls_ca", ca}, is[x509.HostnameError]},
		{"wrong name: another one expected", named, []string{"tls_ca", ca, "tls_server_name", "zk1.example.com"}, is[x509.HostnameError]},
		{"the address, with the name given", addressed, []string{"tls_ca", ca, "tls_server_name", "localhost"}, nil},
		{"expired", late, []string{"tls_ca", ca}, invalid(x509.Expired)},
		{"client's right authority", named, showing("good", ours.issue(time.Hour, "client")), nil},
		{"client's wrong authority", named, showing("wrong", other.issue(time.Hour, "client")), byServer},
		{"client's expired", named, showing("late", ours.issue(-time.Minute, "client")), byServer},
		{"expired, not verified", late, []string{"tls_insecure_skip_verify", "true"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := dialTLS(t, canaryUser+":"+canary+"@", c.hosts, quick(append(c.keys, "connect_timeout", patience.String())...))
			if c.refused == nil {
				if err := client.Ping(within(t)); err != nil {
					t.Fatal(err)
				}
				release(t, acquire(t, client.Mutex("x")))
				return
			}
			for verb, call := range calls(client) {
				began := time.Now()
				err := call(within(t))
				if !errors.Is(err, zklock.ErrUnavailable) || !c.refused(err) {
					t.Errorf("%s: %v", verb, err)
				}
				if d := time.Since(began); d > atOnce {
					t.Errorf("%s: refused after %v, want at once", verb, d)
				}
			}
			if n := client.Stats().SessionsOpened; n != 0 {
				t.Errorf("%d sessions were opened, want none", n)
			}
		})
	}
}

// TestOldTLSIsRefused: zklock's client refuses a server that offers only TLS 1.1. The test
// checks first that the server accepts another client that asks for it.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	long.Test(t, "servers with certificates of their own")
	ours := newAuthority(t, "ours")
	files := newPEMFiles(t)
	ca := files.write("ca.pem", ours.pem)
	allow := filepath.Join(t.TempDir(), "java.security")
	if err := os.WriteFile(allow, []byte("jdk.tls.disabledAlgorithms=\njdk.tls.legacyAlgorithms=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := secureEnsemble(t, ours.issue(time.Hour, "server", "localhost"), []*authority{ours}, ensemble.Config{
		Extra:       []string{"ssl.protocol=TLSv1.1", "ssl.enabledProtocols=TLSv1.1"},
		JavaOptions: []string{"-Djava.security.properties=" + filepath.ToSlash(allow)},
	})
	old := ours.issue(time.Hour, "old").config(t, ours)
	old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	// Package ensemble waits for the plain port, and the TLS port is opened after it.
	eventually(t, "the server speaks TLS 1.1 with a client that asks for it", func() bool {
		conn, err := tls.Dial("tcp", e.SecureHosts(), old)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	client := dialTLS(t, "", byName(t, e.SecureHosts()), quick("tls_ca", ca, "connect_timeout", patience.String()))
	began := time.Now()
	err := client.Ping(within(t))
	if !errors.Is(err, zklock.ErrUnavailable) || !errors.Is(err, driver.ErrTLS) || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("Ping over TLS 1.1: %v, want ErrUnavailable and ErrTLS", err)
	}
	if d := time.Since(began); d > atOnce {
		t.Errorf("refused after %v, want at once", d)
	}
}

// TestSilentTLSServerIsGivenUp: the client gives up a server that accepts connections and
// never sends a byte.
func TestSilentTLSServerIsGivenUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 64)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		for conn := range accepted {
			_ = conn.Close()
		}
	})
	const limit = 4 * time.Second
	client := dialTLS(t, "", l.Addr().String(), quick("connect_timeout", limit.String(), "session_timeout", "3s"))
	began := time.Now()
	if err := client.Ping(within(t)); !errors.Is(err, zklock.ErrUnavailable) {
		t.Errorf("Ping: %v, want ErrUnavailable", err)
	}
	if d := time.Since(began); d > limit+atOnce {
		t.Errorf("given up after %v, want connect_timeout=%v", d, limit)
	}
	if len(accepted) < 2 {
		t.Errorf("%d connections, want at least 2: a handshake that hangs has to be given up for another try", len(accepted))
	}
}

// TestCertificatesRotate: client and server get certificates of another authority. The
// client keeps its session and its lock.
func TestCertificatesRotate(t *testing.T) {
	t.Parallel()
	long.Test(t, "servers with certificates of their own")
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	files := newPEMFiles(t)
	e := secureEnsemble(t, first.issue(time.Hour, "server", "localhost"), []*authority{first, second}, ensemble.Config{})
	p, err := proxy.New(e.SecureHosts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	show := func(i issued) (cert, key string) {
		return files.write("client.pem", i.cert), files.write("client.key", i.key)
	}
	cert, key := show(first.issue(time.Hour, "before"))
	client := dialTLS(t, "", byName(t, p.Addr()), quick("session_timeout", "60s", "pool_max_sessions", "1", "acl", "open", "connect_timeout", patience.String(),
		"tls_ca", files.write("ca.pem", first.pem), "tls_cert", cert, "tls_key", key))
	held := acquire(t, client.Mutex("x"))
	reconnects := func() uint64 { return client.Stats().Reconnects }
	identity := func() string {
		// The server gives a znode with the scheme auth to the identity that it has
		// seen on the session's connection.
		path := rootOf(t) + "-" + time.Now().Format("150405.000000000")
		l := acquire(t, client.Mutex("probe"))
		defer release(t, l)
		if _, err := l.Txn(within(t), driver.CreateOp(path, nil, driver.Persistent, driver.CreatorACL(driver.PermAll))); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"before", "after"} {
			raw := dialRawTLS(t, e.SecureHosts(), first.issue(time.Hour, name).config(t, first, second))
			if _, _, err := raw.Get(path); err == nil {
				return name
			}
		}
		return "unknown"
	}
	if who := identity(); who != "before" {
		t.Fatalf("the client's identity is %s, want before", who)
	}

	// The client's certificate.
	show(second.issue(time.Hour, "after"))
	n := reconnects()
	p.KillConns()
	eventually(t, "the client has reconnected", func() bool { return reconnects() > n })
	if who := identity(); who != "after" {
		t.Errorf("the client's identity with its new certificate is %s, want after", who)
	}

	// The server's certificate. Its new authority must be in the client's list before the server
	// shows it.
	files.write("ca.pem", first.pem, second.pem)
	e.show(second.issue(time.Hour, "server", "localhost"))
	n = reconnects()
	if err := e.Server(0).Stop(); err != nil {
		t.Fatal(err)
	}
	if err := e.Server(0).Start(); err != nil {
		t.Fatal(err)
	}
	if err := e.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	files.write("ca.pem", second.pem) // without the first authority
	eventually(t, "the client has reconnected", func() bool { return reconnects() > n })
	if err := held.Verify(within(t)); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
	release(t, held)
	if st := client.Stats(); st.SessionsOpened != 1 || st.Lost != 0 {
		t.Errorf("%d sessions were opened and %d locks lost, want 1 and 0", st.SessionsOpened, st.Lost)
	}
}
