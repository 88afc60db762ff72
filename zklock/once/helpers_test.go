package once_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// connect opens a client with one session, and closes it at the end of the test.
func connect(t *testing.T, c driver.Connector, keys ...string) *zklock.Client {
	t.Helper()
	return connectWith(t, c, zklock.Hooks{}, keys...)
}

// connectWith is connect with hooks.
func connectWith(t *testing.T, c driver.Connector, hooks zklock.Hooks, keys ...string) *zklock.Client {
	t.Helper()
	params := url.Values{"pool_max_sessions": {"1"}}
	for i := 0; i < len(keys); i += 2 {
		params.Set(keys[i], keys[i+1])
	}
	cfg, err := zklock.ParseURL("mem://?" + params.Encode())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Connector = c
	client, err := zklock.OpenConfig(cfg, zklock.WithHooks(hooks))
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

// plain opens a session without a client, to read and change znodes.
func plain(t *testing.T, e *memdriver.Ensemble) driver.Session {
	t.Helper()
	s, err := e.Connector().Connect(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// do calls once.Do with a job that returns result, and fails the test unless the job ran as want
// says, and Do returned the result.
func do(t *testing.T, c *zklock.Client, name, slot string, result error, want bool) {
	t.Helper()
	calls := 0
	ran, err := once.Do(t.Context(), c, name, slot, func(context.Context) error { calls++; return result })
	if ran != want || ran != (calls == 1) || calls > 1 {
		t.Errorf("slot %q of %q: ran %v with %d calls, want %v", slot, name, ran, calls, want)
	}
	if ran && !errors.Is(err, result) || !ran && err != nil {
		t.Errorf("slot %q of %q: %v, want %v", slot, name, err, result)
	}
}

var errJob = errors.New("the job failed")
