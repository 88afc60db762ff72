package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
			time.Sleep(12 * time.Second)
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
