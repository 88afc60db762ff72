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

// The servers have no leader for longer than a session timeout. When they have one again, a
// lock that was lost before does not block others for another session timeout: the client that
// has lost it closes its session.
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
			t.Errorf("the lost lock blocked the next client for %v after the servers were connected again, want less than half a session timeout", took)
		}
		mustRelease(t, l)
	})
}

// A client that has had no connection for almost connect_timeout returns ErrOutage at
// once to callers that use WithFailFast. It does not return it to other callers, nor after
// a short wait. When the client was not used for a while, it first waits that long again.
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
				t.Errorf("%s: lock %v, error %v after %v; want ErrOutage: %v, after %v", what, l, err, took, outage, waits)
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
			t.Fatalf("Acquire when the ensemble is back: %v", err)
		}
		// Now there is a session, which has no connection and keeps trying to get one.
		mustRelease(t, l)
		e.Partition(memdriver.AroundClients(0).Reset())
		time.Sleep(10 * time.Second)
		try("a session without a connection", true, 0, fast)
		e.Heal()
	})
}

// A lost session is replaced after a pause. The pause is not an outage, however short
// the caller's wait is.
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
					t.Fatalf("while another client holds: %v, want an error other than ErrOutage", err)
				}
			}
			mustRelease(t, held)
		}
	})
}

// While servers answer, the client does not report an outage: not if they refuse every request
// because they are overloaded, and not if they answer that the session has expired, however long
// the client was cut off before.
func TestFailFastKnowsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		other := connect(t, e.Connector(), nil)
		held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		shed := connect(t, faultdriver.Wrap(e.Connector(), about(faultdriver.Fail(driver.ErrThrottled))), nil)
		if _, err := shed.Mutex("x").Acquire(t.Context(), zklock.WithFailFast()); !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrOutage) {
			t.Errorf("on a server that sheds requests: %v, want ErrUnavailable without ErrOutage", err)
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
			t.Errorf("after an expiry that the ensemble has reported: %v, want ErrNotAcquired", err)
		}
		mustRelease(t, held)
	})
}

// While the session has no connection, a wait that ends and a try do not read as contention: the
// holder, if there is one, may have gone. A lock that this process holds itself is still in use.
func TestOutageIsNotContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		held := mustLock(t)(c.Mutex("held").Acquire(t.Context()))
		e.Partition(memdriver.AroundClients(0).Reset())
		defer e.Heal()
		time.Sleep(100 * time.Millisecond)
		_, waited := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second))
		leader := make(chan error, 1)
		go func() {
			_, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(6*time.Second))
			leader <- err
		}()
		synctest.Wait()
		_, tried := c.Mutex("x").TryAcquire(t.Context())
		_, behind := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second))
		for what, err := range map[string]error{"a wait that ended": waited, "a try behind it": tried, "a wait behind it": behind} {
			if !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("%s: %v, want ErrUnavailable and not ErrNotAcquired", what, err)
			}
		}
		if _, err := c.Mutex("held").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a lock of this process: %v, want ErrNotAcquired", err)
		}
		if err := <-leader; !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("the first in line: %v", err)
		}
		_ = held.Release(t.Context())
	})
}
