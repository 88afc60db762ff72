package integration_test

import (
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// TestTriesOnOneServer: sixteen goroutines try again and again, from before the client's first session
// on, while pool_max_lifetime replaces one session after the other. No try is unavailable. When the
// server has stopped, no try is contended.
func TestTriesOnOneServer(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	// On a busy machine a session may take seconds. A try waits for a quarter of connect_timeout.
	client, err := zklock.Open(e.URL("/locks", url.Values{"pool_max_sessions": {"1"}, "pool_max_lifetime": {"10ms"}, "connect_timeout": {"80s"}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const workers, each = 16, 625
	var got, taken, unavailable atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				l, err := client.Mutex("x").TryAcquire(t.Context())
				switch {
				case err == nil:
					got.Add(1)
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				case errors.Is(err, zklock.ErrNotAcquired):
					taken.Add(1)
				default:
					if unavailable.Add(1) == 1 {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d acquired, %d taken, %d unavailable, with %d sessions", got.Load(), taken.Load(), unavailable.Load(), client.Stats().SessionsOpened)
	if unavailable.Load() > 0 {
		t.Errorf("%d of %d tries were unavailable", unavailable.Load(), workers*each)
	}
	down, err := zklock.Open(e.URL("/locks", url.Values{"pool_max_sessions": {"1"}, "connect_timeout": {"5s"}}))
	if err != nil {
		t.Fatal(err)
	}
	defer down.Close()
	if err := down.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Server(0).Stop(); err != nil {
		t.Fatal(err)
	}
	for range workers {
		wg.Go(func() {
			for range 5 {
				began := time.Now()
				if _, err := down.Mutex("x").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("without a server, after %v: %v, want ErrUnavailable", time.Since(began), err)
				}
			}
		})
	}
	wg.Wait()
}
