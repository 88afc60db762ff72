package corekit

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// ConnectTimeout is connect_timeout of clients of tests whose parameters do not have it: the default.
const ConnectTimeout = 10 * time.Second

// SessionTimeout is session_timeout of clients of tests whose parameters do not have it. It is shorter than the default: tests
// of a loss take a third of the time. What they prove carries over, since all that a client does by time scales with the session
// timeout, up to the bounds that package lease and package zkdriver name; these have tests with several timeouts. With
// ZKLOCK_SHIPPED it is the default: see census.AsShipped.
var SessionTimeout = sessionTimeout()

// usual is SessionTimeout without ZKLOCK_SHIPPED.
const usual = 10 * time.Second

func sessionTimeout() time.Duration {
	if census.AsShipped() {
		return 30 * time.Second
	}
	return usual
}

// Short gives a test that is not parallel the usual SessionTimeout, also with ZKLOCK_SHIPPED: it has figures of that.
func Short(t *testing.T) {
	before := SessionTimeout
	SessionTimeout = usual
	t.Cleanup(func() { SessionTimeout = before })
}

// Config returns the settings that URL keys describe, for a connector.
func Config(t testing.TB, c driver.Connector, params map[string]string) zklock.Config {
	t.Helper()
	values := make(url.Values)
	for k, v := range params {
		values.Set(k, v)
	}
	cfg, err := zklock.ParseURL("mem://?" + values.Encode())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Connector = c
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, SessionTimeout)
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, ConnectTimeout)
	return cfg
}

// Connect opens a client with one session on a connector, and closes it at the
// end of the test.
func Connect(t testing.TB, c driver.Connector, params map[string]string, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	cfg := Config(t, c, params)
	cfg.PoolMaxSessions = cmp.Or(cfg.PoolMaxSessions, 1)
	return OpenConfig(t, cfg, opts...)
}

// OpenConfig opens a client, and closes it at the end of the test.
func OpenConfig(t testing.TB, cfg zklock.Config, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	client, err := zklock.OpenConfig(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return client
}

// Plain opens a session without a client, to read and change znodes.
func Plain(t testing.TB, e *memdriver.Ensemble) driver.Session {
	t.Helper()
	s, err := e.Connector().Connect(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// About lets an injector see only requests that concern lock znodes or the znodes
// below them.
func About(inj faultdriver.Injector) faultdriver.Injector {
	return faultdriver.If("about a lock", func(op faultdriver.Op) bool {
		for _, p := range op.Paths {
			if strings.HasPrefix(p, "/zklock/") {
				return true
			}
		}
		return false
	}, inj)
}

// Nodes returns how many queue nodes an ensemble has. The data of other znodes may name queue nodes, too.
func Nodes(e *memdriver.Ensemble) (n int) {
	for line := range strings.Lines(e.Dump()) {
		name, _, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
		if strings.Contains(name, "_c_") {
			n++
		}
	}
	return n
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
