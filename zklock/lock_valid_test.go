package zklock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Valid is right as soon as a stopped process or a suspended machine goes on, even before any
// goroutine or timer has noticed the end of the lease.
func TestValidLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		synctest.Wait()
		if !l.Valid() {
			t.Fatal("not valid right after the grant")
		}
		lease.AddSuspended(corekit.SessionTimeout)
		if l.Valid() {
			t.Error("valid after the machine was suspended for a session timeout")
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
	})
}

// Until returns the end of a lock, not that of its session's lease.
func TestUntilEndsWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		other := mustLock(t)(c.Mutex("y").Acquire(t.Context())) // keeps the session's lease renewed
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if until := l.Until(); !until.After(time.Now().Add(5 * time.Second)) {
			t.Errorf("Until is %v, want more than 5s from now", until)
		}
		e.Break("/zklock/x")
		if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		if l.Valid() || !l.Until().IsZero() {
			t.Errorf("a lost lock has Valid %v and Until %v, want false and zero", l.Valid(), l.Until())
		}
		mustRelease(t, other)
		if !other.Until().IsZero() {
			t.Errorf("a released lock has Until %v, want zero", other.Until())
		}
	})
}

// A session that holds a lock sends a heartbeat that a quorum commits about every fifth of
// its timeout, and a Sync every tenth, and every second at least. An idle session sends Syncs only, which a deposed
// leader answers too.
func TestHeartbeatsAreCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		d := cost(e, func() { time.Sleep(10 * corekit.SessionTimeout) })
		syncs := int(10 * corekit.SessionTimeout / min(corekit.SessionTimeout/10, time.Second))
		if d.Multis < 33 || d.Multis > 55 || d.MultiOps != d.Multis || d.Syncs < syncs || d.Syncs > syncs*112/100 {
			t.Errorf("while the lock is held, in ten session timeouts: %+v, want 33 to 55 multis of one operation and %d to %d Syncs", d, syncs, syncs*112/100)
		}
		mustRelease(t, l)
		d = cost(e, func() { time.Sleep(corekit.SessionTimeout) })
		if d.Multis > 1 || d.Syncs < 3 { // the one is the removal of the idle container
			t.Errorf("while the session is idle: %+v, want at most one multi and at least 3 Syncs", d)
		}
	})
}

// The lease of a session that holds a lock never gets shorter than a third of the session timeout: so long an outage the lock survives.
func TestLeastLeaseWhileHeld(t *testing.T) {
	const hop = 5 * time.Millisecond
	least := corekit.SessionTimeout * 34 / 100
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("other writes %v", busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(hop))
				c := connect(t, e.Connector(), nil)
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				time.Sleep(10 * time.Second) // a new session's lease is longer at first
				shortest := time.Hour
				for end := time.Now().Add(time.Duration(corekit.Crowd(10)) * time.Minute); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
					if shortest = min(shortest, time.Until(l.Until())); busy && rand.IntN(100) == 0 {
						mustRelease(t, mustLock(t)(c.Mutex("y").Acquire(t.Context())))
					}
				}
				t.Logf("the shortest lease was %v", shortest)
				if shortest < least {
					t.Errorf("the shortest lease was %v, want at least %v", shortest, least)
				}
				mustRelease(t, l)
			})
		})
	}
}

// TestShortLeasesAreKept: a healthy ensemble does not lose a lock with the shortest session
// timeouts that the client accepts.
func TestShortLeasesAreKept(t *testing.T) {
	for _, test := range []struct {
		timeout, tick string
		delay         string
		hop           time.Duration
	}{
		{"1102ms", "100ms", "0", time.Millisecond}, {"1102ms", "100ms", "0", 30 * time.Millisecond}, {"1440ms", "333ms", "0", 30 * time.Millisecond},
		{"1682ms", "500ms", "0", 30 * time.Millisecond}, {"2s", "666ms", "0", 30 * time.Millisecond}, {"2s", "333ms", "560ms", 30 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(test.hop), memdriver.WithTickTime(100*time.Millisecond))
				c := connect(t, e.Connector(), map[string]string{"session_timeout": test.timeout, "tick_time": test.tick, "loss_delay": test.delay})
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				select {
				case <-l.Done():
					t.Fatal(l.Err())
				case <-time.After(2 * time.Minute):
				}
				mustRelease(t, l)
			})
		})
	}
}

// TestHeartbeatsGoOnWithoutTheirSyncs: a server that refuses Syncs costs some of the lease, and
// not the lock.
func TestHeartbeatsGoOnWithoutTheirSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Sync, faultdriver.Fail(driver.ErrThrottled))), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		select {
		case <-l.Done():
			t.Error(l.Err())
		case <-time.After(2 * time.Minute):
			mustRelease(t, l)
		}
	})
}

// TestMinLease: while the ensemble answers, the lease of a lock never gets shorter than
// MinLease says, for as long as the lock is held. It gets that short, or almost.
func TestMinLease(t *testing.T) {
	for _, c := range []struct{ timeout, tick time.Duration }{
		{30 * time.Second, 3 * time.Second}, {10 * time.Second, 3 * time.Second}, {10 * time.Second, 500 * time.Millisecond},
		{6 * time.Second, 2 * time.Second}, {3 * time.Second, time.Second}, {2 * time.Second, 666 * time.Millisecond}, {2 * time.Second, 100 * time.Millisecond},
		{1682 * time.Millisecond, 500 * time.Millisecond}, {1440 * time.Millisecond, 333 * time.Millisecond}, {1102 * time.Millisecond, 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithTickTime(c.tick))
			defer e.Close()
			client := connect(t, e.Connector(), map[string]string{"session_timeout": c.timeout.String(), "tick_time": c.tick.String()})
			l := mustLock(t)(client.Mutex("x").Acquire(t.Context()))
			least := l.MinLease()
			if granted := l.SessionTimeout(); granted != c.timeout {
				t.Errorf("the granted timeout: %v, want %v", granted, c.timeout)
			}
			shortest := c.timeout
			for range 3000 {
				time.Sleep(c.timeout / 300)
				synctest.Wait()
				shortest = min(shortest, time.Until(l.Until()))
			}
			if shortest < least || shortest > least+c.timeout/5 {
				t.Errorf("timeout %v, tick %v: the lease got as short as %v, and at least %v is left", c.timeout, c.tick, shortest, least)
			}
			if now := l.MinLease(); now != least || least <= 0 {
				t.Errorf("timeout %v: at least %v is left, and before it was %v", c.timeout, now, least)
			}
			mustRelease(t, l)
		})
	}
}

// Verify returns ErrReleased if the handle is released while it asks the ensemble.
func TestVerifyOfAHandleReleasedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		joined := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		verified := make(chan error, 1)
		go func() { verified <- joined.Verify(t.Context()) }()
		synctest.Wait()
		mustRelease(t, joined)
		if err := <-verified; !errors.Is(err, zklock.ErrReleased) {
			t.Error(err)
		}
		mustRelease(t, l)
	})
}
