package zklock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestRestoredEnsembleInMemory restores an ensemble while clients use it. Each client gives its session up a
// session timeout, and an interval of exchanges, after the last answer, and finds out that tokens went
// back: also the one of which only Healthy is called. All of them say so from then on, and hold nothing.
func TestRestoredEnsembleInMemory(t *testing.T) {
	for _, servers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 10 * time.Second
			e := memdriver.New(memdriver.WithServers(servers))
			restore := memcontrol.Of(e).Backup()
			all := make(map[string]*zklock.Client)
			logs := make(map[string]*locked)
			for _, name := range []string{"idle", "probed", "holds", "waits", "blocks"} {
				logs[name] = new(locked)
				c := connect(t, e.Connector(), map[string]string{"session_timeout": timeout.String()}, zklock.WithLogger(slog.New(slog.NewTextHandler(logs[name], nil))))
				for range 20 {
					mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
				}
				all[name] = c
			}
			held := mustLock(t)(all["holds"].Mutex("held").Acquire(t.Context()))
			mustLock(t)(all["blocks"].Mutex("blocked").Acquire(t.Context()))
			waits := make(chan error, 1)
			go func() {
				l, err := all["waits"].Mutex("blocked").Acquire(t.Context())
				if err == nil {
					err = l.Release(t.Context())
				}
				waits <- err
			}()
			time.Sleep(time.Minute)
			restore(time.Second)
			down := time.Now()
			if err := <-waits; zklock.Reason(err) != "token_regression" {
				t.Errorf("the waiter: %v, want the reason token_regression", err)
			}
			<-held.Done()
			time.Sleep(time.Until(down.Add(timeout * 4 / 3)))
			all["probed"].Healthy() // opens a session
			_, err := all["idle"].Mutex("idle").Acquire(t.Context())
			if took := time.Since(down); took > timeout*3/2 || zklock.Reason(err) != "token_regression" {
				t.Errorf("the client that was idle, after %v: %v, want the reason token_regression after %v at most", took, err, timeout*3/2)
			}
			if _, err := all["holds"].Mutex("held").Acquire(t.Context()); zklock.Reason(err) != "token_regression" {
				t.Errorf("the former holder: %v, want the reason token_regression", err)
			}
			delete(all, "blocks") // nothing wants a session of it
			time.Sleep(time.Second)
			for name, c := range all {
				for range 2 {
					healthy, ping, regressed := c.Healthy(), c.Ping(t.Context()), c.Stats().TokensRegressed
					if zklock.Reason(healthy) != "token_regression" || zklock.Reason(ping) != "token_regression" || !regressed {
						t.Errorf("%s: Healthy %v, Ping %v, Stats %v; want the reason token_regression", name, healthy, ping, regressed)
					}
				}
				if n := strings.Count(logs[name].String(), "tokens would go back"); n != 1 {
					t.Errorf("%s: %d log lines, want one:\n%s", name, n, logs[name])
				}
				if st := c.Stats(); st.Held != 0 || st.Acquiring != 0 {
					t.Errorf("%s: %+v, want nothing held", name, st)
				}
			}
			fresh := connect(t, e.Connector(), nil)
			for range 200 { // until the ids have passed all that the clients know
				mustRelease(t, mustLock(t)(fresh.Mutex("blocked").Acquire(t.Context())))
			}
			for name, c := range all {
				if _, err := c.Mutex("blocked").Acquire(t.Context()); zklock.Reason(err) != "token_regression" {
					t.Errorf("%s, after the ids have grown: %v, want the reason token_regression", name, err)
				}
			}
		})
	}
}

// A session can survive a restore: the server knows it, and its ids have passed those that the session has
// seen. Another session of the client knows greater ones. The first write of either finds that out, and
// the client ends both: the queues of the restored ensemble have a node that the client deleted.
func TestRestoreUnderALivingSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"pool_max_sessions": "2", "session_timeout": "30s"})
		one, two := namesOnTwoSessions(t, c)
		lock := mustLock(t)(c.Mutex(one).Acquire(t.Context()))
		restore := memcontrol.Of(e).Backup()
		mustRelease(t, lock)
		for range 100 {
			mustRelease(t, mustLock(t)(c.Mutex(two).Acquire(t.Context())))
		}
		restore(time.Second)
		other := connect(t, e.Connector(), nil)
		for range 20 {
			mustRelease(t, mustLock(t)(other.Mutex("busy").Acquire(t.Context())))
		}
		time.Sleep(2 * time.Second)
		if _, err := c.Mutex(one).Acquire(t.Context()); zklock.Reason(err) != "token_regression" {
			t.Fatalf("%v, want the reason token_regression\n%s", err, e.Dump())
		}
		mustRelease(t, soon(t, "another client", acquiring(t, other.Mutex(one), t.Context())))
	})
}

// namesOnTwoSessions returns two names that the client locks on different sessions.
func namesOnTwoSessions(t *testing.T, c *zklock.Client) (one, two string) {
	t.Helper()
	session := func(name string) int64 {
		l := mustLock(t)(c.Mutex(name).Acquire(t.Context()))
		defer mustRelease(t, l)
		queue, err := c.Contenders(t.Context(), name)
		if err != nil || len(queue) != 1 {
			t.Fatal(queue, err)
		}
		return queue[0].Session
	}
	all := names(100)
	first := session(all[0])
	for _, name := range all[1:] {
		if session(name) != first {
			return all[0], name
		}
	}
	t.Fatal("all names are on one session")
	return "", ""
}

// A follower that lags behind what a client has seen closes its connection, as a restored server does.
// The client does not take that for a regression: it finds another server, and keeps its session and its
// lock.
func TestLaggingFollowerIsNoRegression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		leader := e.Leader()
		lagging := (leader + 1) % 3
		c := connect(t, e.Connector(lagging, leader), nil)
		held := mustLock(t)(c.Mutex("held").Acquire(t.Context()))
		id := e.Sessions()[0]
		memcontrol.Of(e).Lag(lagging, time.Hour)
		e.Partition(memdriver.BetweenSession(id, lagging).Reset()) // to the leader
		time.Sleep(time.Second)
		for range 20 {
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		}
		e.Heal()
		for range 10 { // the lagging server is tried each second time
			e.KillConnection(id)
			time.Sleep(time.Second)
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		}
		if err := held.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Healthy(); err != nil {
			t.Error(err)
		}
		if st := c.Stats(); st.TokensRegressed || st.SessionsLost != 0 || st.Reconnects < 10 {
			t.Errorf("%+v, want ten reconnects and nothing lost", st)
		}
		mustRelease(t, held)
	})
}

// why is a connector whose Diagnose has a reason.
type why struct {
	driver.Connector
	reason error
}

func (w *why) Diagnose() error { return w.reason }

// The error of an acquisition, and of Ping, has the driver's reason why the session has no connection.
func TestErrorsSayWhyASessionHasNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		reason := errors.New("the servers close the connection")
		c := connect(t, &why{e.Connector(), reason}, map[string]string{"session_timeout": "40s", "connect_timeout": "5s"})
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		e.Partition(memdriver.AroundClients(0).Reset())
		defer e.Heal()
		for what, call := range map[string]func() error{
			"Acquire": func() error { _, err := c.Mutex("x").Acquire(t.Context()); return err },
			"Acquire with a deadline": func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_, err := c.Mutex("x").Acquire(ctx)
				return err
			},
			"Ping":       func() error { return c.Ping(t.Context()) },
			"Contenders": func() error { _, err := c.Contenders(t.Context(), "x"); return err },
		} {
			if err := call(); !errors.Is(err, zklock.ErrUnavailable) || !strings.Contains(err.Error(), reason.Error()) || errors.Is(err, reason) {
				t.Errorf("%s: %v, want ErrUnavailable with the driver's reason as text", what, err)
			} else {
				t.Logf("%s: %v", what, err)
			}
		}
	})
}

// Calls in an outage take connect_timeout, or a tenth of it more if the client gives its session up meanwhile.
func TestSessionThatIsGivenUpDoesNotProlongCalls(t *testing.T) {
	for since := range 20 { // seconds
		for what, call := range map[string]func(context.Context, *zklock.Client) error{
			"Acquire":    func(ctx context.Context, c *zklock.Client) error { _, err := c.Mutex("x").Acquire(ctx); return err },
			"Contenders": func(ctx context.Context, c *zklock.Client) error { _, err := c.Contenders(ctx, "x"); return err },
			"Ping":       func(ctx context.Context, c *zklock.Client) error { return c.Ping(ctx) },
		} {
			synctest.Test(t, func(t *testing.T) {
				const limit = 10 * time.Second
				e := memdriver.New()
				c := connect(t, e.Connector(), map[string]string{"session_timeout": "10s", "connect_timeout": limit.String()})
				mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
				time.Sleep(time.Minute)
				e.Partition(memdriver.AroundClients(0).Reset())
				defer e.Heal()
				time.Sleep(time.Duration(since) * time.Second)
				began := time.Now()
				if err := call(t.Context(), c); time.Since(began) > limit*11/10 || !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("%s, %ds after the beginning of an outage, took %v: %v", what, since, time.Since(began), err)
				}
			})
		}
	}
}

// twoEnsembles is a connector that connects to another ensemble from some time on.
type twoEnsembles struct {
	driver.Connector

	mu    sync.Mutex
	later driver.Connector // guarded by mu
}

func (c *twoEnsembles) set(later driver.Connector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.later = later
}

func (c *twoEnsembles) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	c.mu.Lock()
	to := c.Connector
	if c.later != nil {
		to = c.later
	}
	c.mu.Unlock()
	return to.Connect(ctx, timeout)
}

// An ensemble that was set back to an older state would give tokens a second time. From then on
// the client grants nothing: an operator must look into it, and open a new client.
func TestTokensThatRunBackAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := memdriver.New(), memdriver.New()
		both := &twoEnsembles{Connector: before.Connector()}
		c := connect(t, both, nil)
		for range 20 {
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		}
		both.set(after.Connector())
		before.ExpireAll()
		time.Sleep(time.Second)
		for range 2 {
			if _, err := c.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrBadEnsemble) {
				t.Errorf("Acquire after the ensemble was set back: %v, want ErrBadEnsemble", err)
			}
		}
		synctest.Wait()
		if n := nodes(after); n != 0 {
			t.Errorf("left behind:\n%s", after.Dump())
		}
	})
}
