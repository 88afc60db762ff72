package zklock_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestGrantedTimeout: a session timeout that is shorter than the one asked for is logged.
// One that is longer is an error, since it may mean that leases would outlast their
// sessions. Servers grant from 2 to 20 of their ticks.
func TestGrantedTimeout(t *testing.T) {
	for _, c := range []struct {
		what          string
		asked, tick   string
		servers       time.Duration
		refused, logs []string
	}{
		{what: "as asked", asked: "10s", tick: "2s", servers: 2 * time.Second},
		{
			what: "asks for too little, on slower ticks", asked: "1200ms", tick: "100ms", servers: 2 * time.Second,
			refused: []string{"tick_time too small", "granted 4s", "asked for 1.2s", "either its servers' tickTime is 2s", "tick_time=100ms", "or an operator has set their minSessionTimeout", "session_timeout has to be at least 4s"},
		},
		{
			what: "asks for slightly too little", asked: "3s", tick: "900ms", servers: 2 * time.Second,
			refused: []string{"tickTime is 2s", "tick_time=900ms"},
		},
		{
			what: "is granted slightly more than it asks for", asked: "3s", tick: "1s", servers: 1600 * time.Millisecond,
			refused: []string{"tickTime is 1.6s"},
		},
		{
			what: "asks for too much", asked: "10m", tick: "2s", servers: 1900 * time.Millisecond,
			logs: []string{"asked=10m0s", "granted=38s", "maxSessionTimeout"},
		},
		{
			what: "asks for too much, on slower ticks", asked: "10m", tick: "100ms", servers: 2 * time.Second,
			logs: []string{"asked=10m0s", "granted=40s", "tickTime is 2s", "tick_time=100ms"},
		},
		{
			what: "asks for three ticks, with the right tick_time", asked: "4500ms", tick: "1500ms", servers: 1500 * time.Millisecond,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithTickTime(c.servers))
			defer e.Close()
			var log bytes.Buffer
			client := connect(t, e.Connector(), map[string]string{"session_timeout": c.asked, "tick_time": c.tick},
				zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			began := time.Now()
			for verb, call := range map[string]func() error{
				"ping":    func() error { return client.Ping(t.Context()) },
				"acquire": func() error { _, err := client.Mutex("x").Acquire(t.Context()); return err },
			} {
				err := call()
				if (err != nil) != (c.refused != nil) {
					t.Errorf("%s: %s: %v", c.what, verb, err)
				}
				if errors.Is(err, zklock.ErrBadEnsemble) != (c.refused != nil) {
					t.Errorf("%s: %s: %v, which matches ErrBadEnsemble: %v", c.what, verb, err, c.refused == nil)
				}
				for _, want := range c.refused {
					if err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %s: %q does not say %q", c.what, verb, err, want)
					}
				}
			}
			if d := time.Since(began); d > 100*time.Millisecond {
				t.Errorf("%s: the calls took %v, want at most 100ms", c.what, d)
			}
			lines := strings.Count(log.String(), "granted a shorter session timeout")
			if want := min(len(c.logs), 1); lines != want {
				t.Errorf("%s: %d warnings, want %d:\n%s", c.what, lines, want, &log)
			}
			for _, want := range c.logs {
				if !strings.Contains(log.String(), want) {
					t.Errorf("%s: the log does not say %q:\n%s", c.what, want, &log)
				}
			}
		})
	}
}
