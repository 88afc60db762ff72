package cli

import (
	"bytes"
	"context"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// command runs a command line on an ensemble in memory. It returns the exit code, and what was
// printed.
func command(t testing.TB, e *memdriver.Ensemble, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = execute(t.Context(), args, &out, &err, env("mem://"), func(cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, error) {
		cfg.Connector = e.Connector()
		return zklock.OpenConfig(cfg, opts...)
	})
	return code, out.String(), err.String()
}

// env is an environment that has only a URL.
func env(url string) func(string) string {
	return func(name string) string {
		if name == urlEnv {
			return url
		}
		return ""
	}
}

// client opens a client of an ensemble in memory.
func client(t testing.TB, e *memdriver.Ensemble, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	c, err := zklock.OpenConnector(e.Connector(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// hold acquires a lock until the end of the test.
func hold(t testing.TB, a zklock.Acquirer, opts ...zklock.AcquireOption) *zklock.Lock {
	t.Helper()
	l, err := a.Acquire(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wait begins to wait for a lock, in a goroutine that ends with the test, and returns when the
// queue has n contenders.
func wait(t testing.TB, watch *zklock.Client, name string, n int, a zklock.Acquirer, opts ...zklock.AcquireOption) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l, err := a.Acquire(ctx, opts...); err == nil {
			_ = l.Release(context.Background())
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for queue, err := range watch.Watch(t.Context(), name) {
		if err != nil {
			t.Fatal(err)
		}
		if len(queue) == n {
			return
		}
	}
}
