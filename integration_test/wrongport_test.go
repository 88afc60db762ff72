package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// TestWrongPortIsRefusedAtOnce: a ZooKeeper server closes connections whose first bytes it
// does not understand. A web server waits for the rest of a line. Neither will change while
// a caller waits, so calls fail at once instead of after connect_timeout.
func TestWrongPortIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	secure := secureEnsemble(t, ours.issue(time.Hour, "server", "localhost"), []*authority{ours}, ensemble.Config{})
	plain := sharedEnsemble(t)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	short := keys("session_timeout", "2s", "tick_time", "500ms", "connect_timeout", patience.String())
	for _, c := range []struct {
		name   string
		client *zklock.Client
		says   []string
	}{
		{"zk:// to a port of TLS", dial(t, secure.SecureHosts(), short), []string{secure.SecureHosts(), "expects TLS", "zks://"}},
		{"zks:// to a plain port", dialTLS(t, "", byName(t, plain.Hosts()), short), []string{"speaks no TLS", "zk://"}},
		{"zks:// to a plain port of Netty", dialTLS(t, "", byName(t, secure.Hosts()), short), []string{"speaks no TLS", "zk://"}},
		{"zk:// to a web server", dial(t, web.Listener.Addr().String(), short), []string{"connected, but got no ZooKeeper answer", "HTTP"}},
		{"zks:// to a web server", dialTLS(t, "", byName(t, web.Listener.Addr().String()), short), []string{"HTTP"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for verb, call := range calls(c.client) {
				began := time.Now()
				err := call(within(t))
				if !errors.Is(err, zklock.ErrUnavailable) {
					t.Fatalf("%s: %v, want ErrUnavailable", verb, err)
				}
				if d := time.Since(began); d > atOnce {
					t.Errorf("%s: refused after %v, want at once", verb, d)
				}
				saysAll(t, err, c.says)
			}
		})
	}
}

// TestLimitOnConnectionsIsNamed: a server that has the largest allowed number of connections
// from one address closes the next connection without a reply. The error names that limit.
func TestLimitOnConnectionsIsNamed(t *testing.T) {
	t.Parallel()
	const limit = 3
	e := ensemble.Start(t, ensemble.Config{Extra: []string{fmt.Sprintf("maxClientCnxns=%d", limit)}})
	for range limit {
		c := dial(t, e.Hosts(), quick("pool_max_sessions", "1"))
		if err := c.Ping(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	err := dial(t, e.Hosts(), quick("connect_timeout", "3s")).Ping(within(t))
	if !errors.Is(err, zklock.ErrUnavailable) {
		t.Fatalf("%v, want ErrUnavailable", err)
	}
	saysAll(t, err, []string{e.Hosts(), "maxClientCnxns", fmt.Sprintf("this process alone has %d", limit)})
	for _, other := range []string{"TLS", "not a ZooKeeper server", "tcp", "EOF"} {
		if strings.Contains(err.Error(), other) {
			t.Errorf("%q mentions %q, although the server answers other clients of this process", err, other)
		}
	}
}
