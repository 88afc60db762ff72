package zklock_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Servers elect nobody for longer than sessions live. When they have a leader
// again, what was lost meanwhile does not stay in the way for another session
// timeout: whoever has lost it takes it away.
func TestLostSessionIsClosedHoweverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 6 * time.Second
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(500*time.Millisecond))
		params := map[string]string{"session_timeout": timeout.String(), "tick_time": "500ms", "connect_timeout": "1h"}
		a, b := connect(t, e.Connector(), params), connect(t, e.Connector(), params)
		lost := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		time.Sleep(time.Second)
		for server := range 3 {
			e.Partition(memdriver.AroundServer(server))
		}
		<-lost.Done()
		time.Sleep(10 * timeout)
		next := acquiring(t, b.Mutex("x"), t.Context())
		e.Heal()
		healed := time.Now()
		l := <-next
		if took := time.Since(healed); took >= timeout/2 {
			t.Errorf("the lock was in the way for %v after the servers had each other again", took)
		}
		mustRelease(t, l)
	})
}

// A client that has been without a connection for almost connect_timeout says so at once
// to callers that ask for that. It does not to others, nor when a wait was short, nor when
// nothing was asked of it for a while.
func TestFailFastKnowsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const almost = 10 * time.Second * 19 / 20
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		try := func(what string, outage bool, waits time.Duration, opts ...zklock.AcquireOption) {
			t.Helper()
			began := time.Now()
			l, err := c.Mutex("x").Acquire(t.Context(), opts...)
			if took := time.Since(began); err == nil || errors.Is(err, zklock.ErrOutage) != outage || !errors.Is(err, zklock.ErrUnavailable) || took != waits {
				t.Errorf("%s: %v, %v after %v; want an outage: %v, after %v", what, l, err, took, outage, waits)
			}
		}
		fast := zklock.WithFailFast()
		e.Partition(memdriver.AroundClients(0).Reset())
		try("a short wait", false, time.Second, fast, zklock.WithWait(time.Second))
		try("the first", true, almost-time.Second, fast)
		try("the second", true, 0, fast)
		try("a short wait, later", true, 0, fast, zklock.WithWait(time.Second))
		try("one that waits", false, 10*time.Second)
		try("the third", true, 0, fast)
		time.Sleep(time.Minute)
		try("a minute later", true, almost, fast)
		e.Heal()
		time.Sleep(time.Minute)
		l, err := c.Mutex("x").Acquire(t.Context(), fast)
		if err != nil {
			t.Fatalf("when the ensemble is back: %v", err)
		}
		// The session has no connection, and tries to get one all the time.
		mustRelease(t, l)
		e.Partition(memdriver.AroundClients(0).Reset())
		time.Sleep(10 * time.Second)
		try("a session without a connection", true, 0, fast)
		e.Heal()
	})
}

// A lost session is replaced after a pause. That is no outage, however short the wait.
func TestFailFastKnowsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		for range 5 {
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
			e.ExpireAll()
			held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			for range 100 {
				if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithFailFast(), zklock.WithWait(50*time.Millisecond)); err == nil || errors.Is(err, zklock.ErrOutage) {
					t.Fatalf("beside a holder: %v", err)
				}
			}
			mustRelease(t, held)
		}
	})
}

// A server that sheds every request is no outage, nor is one whose answer is that the
// session is over, however long the client was cut off before.
func TestFailFastKnowsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		other := connect(t, e.Connector(), nil)
		held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		shed := connect(t, faultdriver.Wrap(e.Connector(), about(faultdriver.Fail(driver.ErrThrottled))), nil)
		if _, err := shed.Mutex("x").Acquire(t.Context(), zklock.WithFailFast()); !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrOutage) {
			t.Errorf("behind a server that sheds requests: %v", err)
		}
		sessions := e.Sessions()
		c := connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range e.Sessions() {
			if !slices.Contains(sessions, id) {
				e.Partition(memdriver.AroundSession(id).Reset())
			}
		}
		time.Sleep(time.Minute)
		e.Heal()
		for c.Stats().SessionsLost == 0 {
			time.Sleep(time.Millisecond)
		}
		if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithFailFast(), zklock.WithWait(5*time.Second)); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("after an expiry that the ensemble has reported: %v", err)
		}
		mustRelease(t, held)
	})
}
