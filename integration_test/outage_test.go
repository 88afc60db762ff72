package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestReleaseWhileDisconnectedIsDoneOnceConnected: the handle ends at once, the node is
// deleted after the reconnect, and the session lives on.
func TestReleaseWhileDisconnectedIsDoneOnceConnected(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	p := newProxy(t, e.Hosts())
	c, other := dial(t, p.Addr(), quick()), dial(t, e.Hosts(), quick())
	l := acquire(t, c.Mutex("x"))
	next := try(t, within(t), other.Mutex("x"))

	p.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Release: %v, want ErrReleasePending and the context's error", err)
	}
	if !errors.Is(l.Err(), zklock.ErrReleased) || l.Valid() || !isDone(l) {
		t.Errorf("the handle: %v, valid %v, done %v, want ErrReleased, false, true", l.Err(), l.Valid(), isDone(l))
	}
	if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleased) {
		t.Errorf("second Release: %v, want ErrReleased", err)
	}
	next.pending(t)
	p.Heal()
	release(t, next.must(t))
	eventually(t, "the client has counted its reconnect", func() bool { return c.Stats().Reconnects > 0 }) // the delete may be done before
	if st := c.Stats(); st.SessionsLost != 0 || st.Lost != 0 {
		t.Errorf("%+v, want a reconnect of the session without a loss", st)
	}
	release(t, acquire(t, c.Mutex("x")))
}

func newProxy(t testing.TB, target string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestServerRestartLosesNothing: a restart that is shorter than the session timeout loses no
// session and no lock.
func TestServerRestartLosesNothing(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{MaxSessionTimeout: time.Minute})
	hooks, waiting := waits()
	params := quick("session_timeout", "1m", "connect_timeout", "1m")
	clients := []*zklock.Client{dial(t, e.Hosts(), params), dial(t, e.Hosts(), params, zklock.WithHooks(hooks))}
	held := acquire(t, clients[0].Mutex("x"))
	next := try(t, within(t), clients[1].Mutex("x"))
	receive(t, "the wait", waiting)

	server := e.Server(0)
	for i, end := range []func() error{
		server.Stop,
		func() error { server.Kill(); return nil },
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for _, c := range clients {
			eventually(t, "a client has reconnected", func() bool {
				st := c.Stats()
				return st.Reconnects > uint64(i) && st.Connected == 1
			})
		}
		if err := held.Verify(within(t)); err != nil || !held.Valid() || isDone(held) {
			t.Errorf("after restart %d: %v, valid %v, done %v, want the lock to be held still", i+1, err, held.Valid(), isDone(held))
		}
		next.pending(t)
	}
	release(t, held)
	l := next.must(t)
	if l.Token().Compare(held.Token()) <= 0 {
		t.Errorf("token %v after %v, want a greater one", l.Token(), held.Token())
	}
	release(t, l)
	for _, c := range clients {
		if st := c.Stats(); st.SessionsLost != 0 || st.SessionsOpened != 1 || st.Lost != 0 {
			t.Errorf("%+v, want one session that was not lost", st)
		}
	}
}

// TestEnsembleDown: a call without a session fails after connect_timeout, in whatever way
// the ensemble fails to serve. A try fails sooner: see Acquirer.
func TestEnsembleDown(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second // enough for a busy machine to reconnect
	params := quick("connect_timeout", limit.String(), "pool_max_sessions", "1")
	e := sharedEnsemble(t)
	want := func(t *testing.T, what string, began time.Time, err error) {
		t.Helper()
		d := time.Since(began)
		if !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("%s: %v, want ErrUnavailable", what, err)
		}
		if least := leastWait(what, limit); d < least || d > limit+atOnce {
			t.Errorf("%s: after %v, want from %v to connect_timeout=%v", what, d, least, limit)
		}
	}
	down := map[string]func(*proxy.Proxy){
		"refuses": (*proxy.Proxy).Cut,
		"silent":  func(p *proxy.Proxy) { p.Blackhole(proxy.Both) },
		"mute":    func(p *proxy.Proxy) { p.Stall(proxy.Down) },
	}
	for name, strike := range down {
		t.Run(name+" from the start", func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, e.Hosts())
			c := dial(t, p.Addr(), params)
			strike(p)
			for verb, call := range calls(c) {
				began := time.Now()
				want(t, verb, began, call(within(t)))
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit/4)
			defer cancel()
			if _, err := c.Mutex("x").Acquire(ctx); !errors.Is(err, zklock.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with a shorter context: %v, want ErrUnavailable and the context's error", err)
			}
			p.Heal()
			release(t, acquire(t, c.Mutex("x")))
		})
		t.Run(name+" later", func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, e.Hosts())
			c := dial(t, p.Addr(), params)
			l := acquire(t, c.Mutex("x"))
			release(t, l)
			strike(p)
			for verb, call := range calls(c) {
				began := time.Now()
				want(t, verb, began, call(within(t)))
			}
			p.Heal()
			release(t, acquire(t, c.Mutex("x")))
		})
	}
}
