package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

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
