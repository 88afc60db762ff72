package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Healthy opens a session, is nil while the ensemble answers, and makes no request.
func TestHealthy(t *testing.T) {
	for _, held := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := connect(t, e.Connector(), nil)
			if err := c.Healthy(); !errors.Is(err, zklock.ErrUnavailable) {
				t.Errorf("before the first use: %v, want ErrUnavailable", err)
			}
			synctest.Wait()
			if n := c.Stats().SessionsOpened; n != 1 {
				t.Fatalf("Healthy has opened %d sessions, want 1", n)
			}
			healthy := func(what string, want error) {
				t.Helper()
				wantCost(t, "Healthy", cost(e, func() {
					if err := c.Healthy(); !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", what, err, want)
					}
				}), free)
			}
			healthy("with a new session", nil)
			if held {
				mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			}
			time.Sleep(time.Hour)
			healthy("after an hour", nil)
			e.Partition(memdriver.AroundServer(0), memdriver.AroundClients(0))
			healthy("when the connection was cut just now", nil)
			time.Sleep(corekit.SessionTimeout * 6 / 5)
			healthy("after an outage of more than a session timeout", zklock.ErrUnavailable)
			time.Sleep(time.Minute)
			healthy("after a long outage", zklock.ErrUnavailable)
			e.Heal()
			for range 100 {
				if c.Healthy() == nil {
					break
				}
				time.Sleep(time.Second)
			}
			healthy("after the outage", nil)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			healthy("after Close", zklock.ErrClosed)
		})
	}
}

// A session whose server answers nothing is not healthy when its timeout has passed, even while
// the client still has it.
func TestHealthyDuringASilentOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"session_timeout": "30s"})
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		began := time.Now()
		for c.Healthy() == nil && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 10*time.Second || took > 31*time.Second {
			t.Errorf("Healthy failed after %v, want at most a session timeout and a good part of it", took)
		}
		e.Heal()
	})
}

// pool_max_lifetime replaces the only session again and again, and the ensemble answers all the time.
// Healthy is nil while the next session is being opened, whether the one before still has a lock or
// not. When the ensemble answers no more, Healthy fails with the try that got no answer.
func TestHealthyDuringAReplacement(t *testing.T) {
	for _, held := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithLatency(time.Millisecond))
			c := connect(t, e.Connector(), map[string]string{"pool_max_lifetime": "100ms"})
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			var users sync.WaitGroup
			users.Go(func() {
				for name := 0; ; name++ {
					select {
					case <-stop:
						return
					default:
					}
					l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
					if held {
						users.Go(func() { time.Sleep(150 * time.Millisecond); mustRelease(t, l) })
						time.Sleep(200 * time.Millisecond)
					} else {
						mustRelease(t, l)
						time.Sleep(time.Millisecond)
					}
				}
			})
			const calls = 6000
			var failed []error
			for range calls {
				if err := c.Healthy(); err != nil {
					failed = append(failed, err)
				}
				time.Sleep(time.Millisecond)
			}
			close(stop)
			users.Wait()
			if n := c.Stats().SessionsOpened; len(failed) > 0 || n < 10 {
				t.Fatalf("%d of %d calls failed, with %d sessions: %v", len(failed), calls, n, errors.Join(failed[:min(len(failed), 1)]...))
			}
			time.Sleep(time.Second)
			e.Partition(memdriver.AroundClients(0))
			cut := time.Now()
			go func() { _, _ = c.Mutex("x").TryAcquire(t.Context()) }() // replaces the session
			for c.Healthy() == nil && time.Since(cut) < time.Minute {
				time.Sleep(time.Millisecond)
			}
			if took := time.Since(cut); took < 2*time.Second || took > 3*time.Second {
				t.Errorf("in an outage Healthy failed after %v, want the time of a try, a quarter of connect_timeout", took)
			}
			e.Heal()
			for c.Healthy() != nil {
				time.Sleep(time.Second)
			}
		})
	}
}

// In an outage Healthy fails as soon as callers do: with the first acquisition that got no answer, and with the first
// locks that were lost because of it, although the other session of the client has not expired. It is nil again with
// the next answer. Acquisitions that fail while the ensemble answers change nothing.
func TestHealthyFailsWithItsCallers(t *testing.T) {
	for what, c := range map[string]struct {
		held bool
		call func(c *zklock.Client, name string) error // nil: no caller
		want time.Duration                             // after the caller failed, at most
	}{
		"a try": {false, func(c *zklock.Client, name string) error {
			_, err := c.Mutex(name).TryAcquire(context.Background())
			return err
		}, 20 * time.Millisecond},
		"a deadline":            {false, func(c *zklock.Client, name string) error { return acquireWithin(c, name, 5*time.Second) }, 20 * time.Millisecond},
		"the loss of its locks": {true, nil, 20 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			client := connect(t, e.Connector(), map[string]string{"session_timeout": "10s", "tick_time": "500ms", "pool_max_sessions": "2"})
			one, two := namesOnTwoSessions(t, client)
			time.Sleep(time.Millisecond / 3) // what callers wait is not counted in whole milliseconds: the last answer was an instant before they asked
			var held *zklock.Lock
			if c.held {
				held = mustLock(t)(client.Mutex(one).Acquire(t.Context()))
				time.Sleep(20 * time.Second)
			}
			mustRelease(t, mustLock(t)(client.Mutex(two).Acquire(t.Context())))
			for range 20 { // another client holds, so these fail
				if c.call == nil {
					break
				}
				other := connect(t, e.Connector(), nil)
				l := mustLock(t)(other.Mutex(one).Acquire(t.Context()))
				if err := c.call(client, one); err == nil {
					t.Fatalf("%s: acquired", what)
				}
				if err := client.Healthy(); err != nil {
					t.Fatalf("%s: the ensemble answers, and Healthy says %v", what, err)
				}
				mustRelease(t, l)
			}
			e.Partition(memdriver.AroundClients(0))
			began := time.Now()
			var callers sync.WaitGroup
			var failed time.Duration
			if c.call != nil {
				callers.Go(func() { _ = c.call(client, one); failed = time.Since(began) })
			} else {
				callers.Go(func() { <-held.Done(); failed = time.Since(began) })
			}
			for client.Healthy() == nil && time.Since(began) < time.Minute {
				time.Sleep(10 * time.Millisecond)
			}
			took := time.Since(began)
			callers.Wait()
			t.Logf("%s: the caller failed %v after the outage began, Healthy after %v", what, failed, took)
			if took > failed+c.want || took < failed || client.Stats().Problem == "" {
				t.Errorf("%s: Healthy failed after %v, the caller after %v, want at most %v more; the problem is %q", what, took, failed, c.want, client.Stats().Problem)
			}
			if c.held && client.Stats().Lost != 1 {
				t.Errorf("%s: %+v", what, client.Stats())
			}
			e.Heal()
			for client.Healthy() != nil {
				if time.Since(began) > time.Minute {
					t.Fatalf("%s: Healthy fails after the outage: %v", what, client.Healthy())
				}
				time.Sleep(10 * time.Millisecond)
			}
			if p := client.Stats().Problem; p != "" {
				t.Errorf("%s: the problem after the outage is %q", what, p)
			}
		})
	}
}

// acquireWithin acquires and releases a name, with a deadline.
func acquireWithin(c *zklock.Client, name string, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	l, err := c.Mutex(name).Acquire(ctx)
	if err == nil {
		err = l.Release(context.Background())
	}
	return err
}
