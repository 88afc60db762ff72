package zklock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
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

// failing acquires in the background, and returns the error and the time it took.
func failing(t *testing.T, c *zklock.Client, opts ...zklock.AcquireOption) chan failure {
	t.Helper()
	failed := make(chan failure, 1)
	began := time.Now()
	go func() {
		l, err := c.Mutex("x").Acquire(t.Context(), opts...)
		if err == nil {
			_ = l.Release(t.Context())
		}
		failed <- failure{err, time.Since(began)}
	}()
	synctest.Wait()
	return failed
}

type failure struct {
	err  error
	took time.Duration
}

// An outage has no end. A waiter that rests gets ErrUnavailable, as the first in line does:
// its session ends a session timeout after the last answer, and from then on connect_timeout
// counts.
func TestOutageEndsARest(t *testing.T) {
	corekit.Short(t)
	for _, what := range []string{"no connection", "no leader"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3))
				held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
				first, far := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				waits := map[string]chan failure{"the first in line": failing(t, first), "a waiter that rests": failing(t, far)}
				time.Sleep(time.Minute)
				if what == "no connection" {
					e.Partition(memdriver.AroundClients(0), memdriver.AroundClients(1), memdriver.AroundClients(2))
				} else {
					for server := range 3 {
						e.Partition(memdriver.AroundServer(server))
					}
				}
				for who, failed := range waits {
					select {
					case f := <-failed:
						if !errors.Is(f.err, zklock.ErrUnavailable) {
							t.Errorf("%s: %v, want ErrUnavailable", who, f.err)
						}
						// A leader that was deposed answers Syncs for a while.
						if after := f.took - time.Minute; after > 25*time.Second {
							t.Errorf("%s failed %v after the outage began, want not much more than session_timeout and connect_timeout, 20s", who, after)
						}
					case <-time.After(time.Hour):
						t.Errorf("%s waits for ever", who)
					}
				}
				<-held.Done()
				if n := far.Stats().SessionsLost; n != 1 {
					t.Errorf("the waiter that rested has lost %d sessions, want 1", n)
				}
				e.Heal()
			})
		})
	}
}

// A waiter that rests, with WithFailFast, gets ErrOutage when its session ends: the connection
// has been missing for connect_timeout by then.
func TestOutageOfARestFailsFast(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		first := failing(t, connect(t, e.Connector(), nil))
		failed := failing(t, connect(t, e.Connector(), nil), zklock.WithFailFast())
		time.Sleep(time.Minute)
		e.Partition(memdriver.AroundClients(0).Reset())
		if f := <-failed; !errors.Is(f.err, zklock.ErrOutage) || f.took > time.Minute+12*time.Second {
			t.Errorf("%v, %v after the outage began; want ErrOutage after session_timeout, 10s", f.err, f.took-time.Minute)
		}
		<-first
		<-held.Done()
		e.Heal()
	})
}

// A wait that ends during an outage returns ErrUnavailable, and not ErrNotAcquired, whether
// the waiter rests or not. At the beginning of an outage it does not yet.
func TestWaitThatEndsDuringAnOutage(t *testing.T) {
	corekit.Short(t)
	for _, test := range []struct {
		after time.Duration // the start of the outage
		want  error
	}{{2 * time.Second, zklock.ErrNotAcquired}, {7 * time.Second, zklock.ErrUnavailable}, {12 * time.Second, zklock.ErrUnavailable}} {
		t.Run(test.after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
				wait := zklock.WithWait(time.Minute + test.after)
				waits := map[string]chan failure{
					"the first in line":   failing(t, connect(t, e.Connector(), nil), wait),
					"a waiter that rests": failing(t, connect(t, e.Connector(), nil), wait),
				}
				time.Sleep(time.Minute)
				e.Partition(memdriver.AroundClients(0))
				for who, failed := range waits {
					if f := <-failed; !errors.Is(f.err, test.want) || f.took != time.Minute+test.after {
						t.Errorf("%s: %v after %v, want %v", who, f.err, f.took, test.want)
					}
				}
				e.Heal()
				_ = held.Release(t.Context()) // it is lost, or not, as the outage was long or not
			})
		})
	}
}

// A waiter that rests keeps its place through an outage that is shorter than the session
// timeout, although no lease would have lasted as long.
func TestRestSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		c, last := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		third := acquiring(t, c.Mutex("x"), t.Context())
		fourth := acquiring(t, last.Mutex("x"), t.Context())
		time.Sleep(time.Minute)
		ids := e.Sessions()
		cut := memdriver.AroundSession(ids[2])
		e.Partition(cut)
		time.Sleep(7 * time.Second)
		e.Heal(cut)
		time.Sleep(time.Second)
		mustRelease(t, held)
		mustRelease(t, soon(t, "the second", second))
		l := soon(t, "the third", third)
		none(t, "the fourth, while the third holds,", fourth)
		if n := c.Stats().SessionsLost; n != 0 {
			t.Errorf("%d sessions were lost in an outage of 7s", n)
		}
		mustRelease(t, l)
		mustRelease(t, soon(t, "the fourth", fourth))
	})
}

// A server that refuses Syncs is not silent: a session at rest sends a heartbeat instead, and
// does not end.
func TestRefusedSyncsDoNotEndARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		refused := faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Sync, faultdriver.Fail(driver.ErrThrottled)))
		c := connect(t, refused, nil)
		third := acquiring(t, c.Mutex("x"), t.Context())
		d := cost(e, func() { time.Sleep(10 * time.Minute) })
		if n := c.Stats().SessionsLost; n != 0 {
			t.Errorf("%d sessions were lost in ten minutes", n)
		}
		if most := 10*60*0.55*2 + 10*60/3; d.Writes() > int(most) {
			t.Errorf("%d writes in ten minutes, want %v at most: one in two intervals of Syncs of the session at rest", d.Writes(), most)
		}
		mustRelease(t, held)
		mustRelease(t, soon(t, "the second", second))
		mustRelease(t, soon(t, "the third", third))
	})
}

// The servers have had no leader for a minute when a caller asks for a lock. By then the client has given
// its idle session up. It gives no other one up: when there is a leader again, the caller gets the lock.
func TestSilenceEndsAnIdleSessionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		c := connect(t, e.Connector(), map[string]string{"connect_timeout": "30s", "session_timeout": "10s"})
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		for server := range 3 {
			e.Partition(memdriver.AroundServer(server))
		}
		lost := func(when string, want uint64) {
			t.Helper()
			if n := c.Stats().SessionsLost; n != want {
				t.Errorf("%s: %d sessions were lost, want %d", when, n, want)
			}
		}
		time.Sleep(10 * time.Second)
		lost("after a session timeout", 0)
		time.Sleep(20 * time.Second) // a leader that is cut off answers for some time
		lost("later", 1)
		time.Sleep(time.Minute)
		got := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		e.Heal()
		mustRelease(t, soon(t, "the caller", got))
		lost("after the outage", 1)
	})
}

// TestConnectTimeoutBoundsLocalWaitersToo: waiters of one process fail after
// connect_timeout together, not one after the other.
func TestConnectTimeoutBoundsLocalWaitersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		inj := faultdriver.On(faultdriver.Connect, faultdriver.Hang())
		c := connect(t, faultdriver.Wrap(e.Connector(), inj), map[string]string{"connect_timeout": "2s"})
		var wg sync.WaitGroup
		began := time.Now()
		for range 5 {
			wg.Go(func() {
				_, err := c.Mutex("a").Acquire(t.Context())
				if !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("Acquire: %v, want ErrUnavailable", err)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Logf("the error matches DeadlineExceeded, and the caller has set no deadline: %v", err)
				}
				if d := time.Since(began); d > 3*time.Second {
					t.Errorf("there was no session, and the waiter failed after %v, with connect_timeout=2s", d)
				}
			})
		}
		wg.Wait()
	})
}

// TestConnectTimeoutStartsWithTheCall: connect_timeout counts from the call, not from the
// first failed try.
func TestConnectTimeoutStartsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		outage := faultdriver.NewToggle(faultdriver.On(faultdriver.Connect, faultdriver.Hang())) // no other session can be opened
		b := connect(t, faultdriver.Wrap(e.Connector(), outage), nil)
		if err := b.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		outage.On()
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		began := time.Now()
		_, err := b.Mutex("x").Acquire(t.Context())
		if d := time.Since(began); !errors.Is(err, zklock.ErrUnavailable) || d > 11*time.Second {
			t.Errorf("Acquire returned after %v, with connect_timeout=10s: %v", d, err)
		}
		e.Heal()
	})
}
