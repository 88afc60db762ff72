package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestTimeoutsThatCannotWorkAreRefused: with these settings a healthy ensemble would lose locks,
// or would never prove a lease that a grant needs. Open refuses them, and so does the client
// when the servers grant such a session timeout. The error has all the numbers.
func TestTimeoutsThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []struct {
		timeout, tick, delay string
		left, need           string // what the error says
	}{
		{"600ms", "200ms", "0s", "as short as 0s", "at least 1.247s"},   // lost a lock 207 times in two minutes
		{"1.2s", "200ms", "600ms", "as short as 0s", "at least 1.847s"}, // loss_delay leads to the same lease
		{"400ms", "100ms", "0s", "as short as 0s", "at least 1.102s"},   // failed each Acquire
		{"1s", "333ms", "0s", "as short as 7ms", "at least 1.44s"},
		{"8s", "3s", "0s", "as short as 2.12s", "at least 9s"},
		{"10s", "3s", "1.1s", "as short as 2.696s", "at least 10.1s"},
		{"10s", "500ms", "6s", "as short as 2.06s", "at least 12s"},
	} {
		t.Run(c.timeout+" "+c.tick+" "+c.delay, func(t *testing.T) {
			refusal := []string{c.timeout + " is too short", "tick_time=" + c.tick, "loss_delay=" + c.delay, "leases get " + c.left, "has to be " + c.need}
			refuses := func(what string, err error, want ...string) {
				t.Helper()
				if err == nil {
					t.Errorf("%s is accepted", what)
					return
				}
				for _, text := range append(want, refusal...) {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%s: %q does not say %q", what, err, text)
					}
				}
			}
			client, err := zklock.Open(fmt.Sprintf("mem://?session_timeout=%s&tick_time=%s&loss_delay=%s", c.timeout, c.tick, c.delay))
			if err == nil {
				_ = client.Close()
			}
			refuses("the URL", err, `"session_timeout"`, "raise session_timeout")
			synctest.Test(t, func(t *testing.T) {
				granted, err := time.ParseDuration(c.timeout)
				if err != nil {
					t.Fatal(err)
				}
				e := memdriver.New(memdriver.WithTickTime(granted / 20))
				defer e.Close()
				client := connect(t, e.Connector(), map[string]string{"session_timeout": "1m", "tick_time": c.tick, "loss_delay": c.delay})
				_, err = client.Mutex("x").TryAcquire(t.Context())
				refuses("the granted timeout", err, "granted "+c.timeout, "asked for 1m0s", "raise the servers' maxSessionTimeout")
				if !errors.Is(err, zklock.ErrBadEnsemble) {
					t.Errorf("%v does not match ErrBadEnsemble", err)
				}
			})
		})
	}
}

// TestTimeoutsThatAreAcceptedWork: with all settings that Open accepts, a lock on a healthy
// ensemble is never lost, and an acquisition takes no longer than its requests and one
// heartbeat, also after a pause. That holds while a message takes up to 30 ms.
func TestTimeoutsThatAreAcceptedWork(t *testing.T) {
	accepted, refused := 0, 0
	inTenthsOfATick := []time.Duration{30, 40, 100, 200}
	switch {
	case corekit.Race:
		inTenthsOfATick = []time.Duration{30, 200}
	case long.On():
		inTenthsOfATick = []time.Duration{30, 35, 40, 50, 65, 80, 100, 130, 200}
	}
	inMilliseconds := []time.Duration{100, 200, 300, 500, 1000, 3000}
	if corekit.Race {
		inMilliseconds = []time.Duration{100, 500, 3000}
	}
	for _, tick := range inMilliseconds {
		for _, ticks := range inTenthsOfATick {
			for _, delay := range []time.Duration{0, 10, 25, 50} { // percent
				for _, hop := range []time.Duration{1, 30} {
					tick, hop := tick*time.Millisecond, hop*time.Millisecond
					timeout := tick * ticks / 10
					params := map[string]string{"session_timeout": timeout.String(), "tick_time": tick.String(), "loss_delay": (timeout * delay / 100).String(), "pool_max_sessions": "1"}
					what := fmt.Sprint(params, " and ", hop, " for a message")
					ok, failure := useLock(t, params, timeout, tick, hop)
					if failure != "" {
						t.Errorf("%s: %s", what, failure)
					}
					if ok {
						accepted++
					} else {
						refused++
					}
				}
			}
		}
	}
	t.Logf("%d settings are accepted, and %d are refused", accepted, refused)
	if accepted == 0 || refused == 0 {
		t.Error("the table shows nothing")
	}
}

// useLock uses a lock on three servers for more than a minute, if Open accepts the settings. It
// returns what has failed.
func useLock(t *testing.T, params map[string]string, timeout, tick, hop time.Duration) (accepted bool, failure string) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(tick), memdriver.WithLatency(hop))
		defer e.Close()
		c, err := zklock.OpenConfig(config(t, e.Connector(), params), zklock.WithLogger(nil))
		if accepted = err == nil; !accepted {
			return
		}
		defer c.Close()
		// The first acquisition of a session takes 14 messages, one after the other. A Sync and a
		// write take up to 10, and come 200 ms after the ones before.
		atOnce := 24*hop + 200*time.Millisecond
		rng := rand.New(rand.NewPCG(uint64(timeout), uint64(hop)))
		some := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
		for use, hold := 0, time.Minute; use < 20; use, hold = use+1, some(timeout) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			l, err := c.Mutex("x").Acquire(ctx)
			cancel()
			if err != nil {
				failure = err.Error()
				return
			}
			if d := time.Since(began); d > atOnce {
				failure = fmt.Sprintf("an acquisition took %v, want at most %v", d, atOnce)
			}
			time.Sleep(hold)
			if err := l.Release(t.Context()); err != nil {
				failure = err.Error()
				return
			}
			time.Sleep(some(2 * timeout))
		}
	})
	return accepted, failure
}

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
			var log locked
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
			synctest.Wait() // for the log
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

func TestLossDelayThatDoesNotFitIsRefused(t *testing.T) {
	for _, c := range []struct {
		params string
		says   []string // nil: Open accepts it
	}{
		{"session_timeout=10s&loss_delay=1s", nil},
		{"session_timeout=10s&loss_delay=1100ms", []string{"loss_delay=1.1s", "10s", "at least 10.1s"}},
		{"session_timeout=10s&loss_delay=5s", []string{"at least 14s"}},
		{"loss_delay=5s&session_timeout=14s", nil},
		{"loss_delay=5s&tick_time=500ms", nil},
		{"session_timeout=10s&loss_delay=6s&tick_time=500ms", []string{"at least 12s"}},
		{"loss_delay=-1s", []string{`"loss_delay"`}},
		{"loss_delay=soon", []string{`"loss_delay"`, "duration"}},
		{"loss_delay=2000000h", []string{`"loss_delay"`}},
	} {
		client, err := zklock.Open("mem://?" + c.params)
		if err == nil {
			_ = client.Close()
		}
		if (err == nil) != (c.says == nil) {
			t.Errorf("%s: %v", c.params, err)
		}
		for _, word := range c.says {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", c.params, err, word)
			}
		}
	}
	// The session timeout that the ensemble grants may be too short for loss_delay.
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithTickTime(500 * time.Millisecond)) // grants 10s at most
		c := connect(t, e.Connector(), map[string]string{"session_timeout": "20s", "tick_time": "500ms", "loss_delay": "6s"})
		began := time.Now()
		_, err := c.Mutex("x").Acquire(t.Context())
		if err == nil || !strings.Contains(err.Error(), "loss_delay=6s") || !strings.Contains(err.Error(), "granted 10s") {
			t.Errorf("with a session timeout of 10s granted: %v", err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the error took %v, want at most 1s", d)
		}
	})
}
