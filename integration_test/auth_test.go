package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// refusals are hooks that count operations which the server refused for want of
// rights: what a connection without credentials would meet with acl=creator.
func refusals() (zklock.Hooks, *atomic.Int32) {
	n := new(atomic.Int32)
	return zklock.Hooks{Operation: func(ctx context.Context, _ zklock.OperationEvent) (context.Context, func(error)) {
		return ctx, func(err error) {
			if errors.Is(err, driver.ErrNoAuth) || errors.Is(err, driver.ErrInvalidACL) {
				n.Add(1)
			}
		}
	}}, n
}

// owning are parameters of clients that own what they make.
func owning(kv ...string) url.Values {
	return quick(append([]string{"acl", "creator", "pool_max_sessions", "1", "connect_timeout", patience.String()}, kv...)...)
}

// credentialsFirst fails the test where a connection asked for anything before it
// had presented its credentials, or presented them more than once.
func credentialsFirst(t *testing.T, asked [][]int32) (used int) {
	t.Helper()
	for i, ops := range asked {
		for j, op := range ops {
			if (op == codeAuth) != (j == 0) {
				t.Errorf("connection %d: request %d is operation %d; all: %v", i, j, op, ops)
				break
			}
		}
		if len(ops) > 0 {
			used++
		}
	}
	return used
}

// TestCredentialsComeFirstOnEveryConnection: they are lost with each connection,
// and so are requests that wait to be sent, which must not go out before them.
func TestCredentialsComeFirstOnEveryConnection(t *testing.T) {
	const kills = 25
	e := sharedEnsemble(t)
	w := newWiretap(t, e.Hosts())
	hooks, refused := refusals()
	c := dial(t, w.Addr(), owning(), zklock.WithHooks(hooks))
	held := acquire(t, c.Mutex("held"))
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	var workers sync.WaitGroup
	var done atomic.Int64
	for i := range 6 {
		workers.Go(func() {
			for ctx.Err() == nil {
				err := zklock.Do(ctx, c.Mutex(name(i%3)), func(context.Context) error { return nil }, zklock.WithoutHandover())
				if err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	for range kills {
		before, work := c.Stats().Reconnects, done.Load()
		pause := time.NewTimer(time.Duration(rand.IntN(30)) * time.Millisecond)
		<-pause.C // so that it strikes anywhere in the exchange
		w.KillConns()
		eventually(t, "it has reconnected and goes on", func() bool { return c.Stats().Reconnects > before && done.Load() > work || t.Failed() })
	}
	stop()
	workers.Wait()
	if err := held.Verify(within(t)); err != nil {
		t.Errorf("the lock held all the time: %v", err)
	}
	release(t, held)
	if used := credentialsFirst(t, w.asked(0)); used < kills {
		t.Errorf("%d connections were used, want more than %d", used, kills)
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("%d operations were refused", n)
	}
	if st := c.Stats(); st.SessionsOpened != 1 {
		t.Errorf("%d sessions were opened", st.SessionsOpened)
	}
}

// TestCredentialsRefusedOnReconnect: the holder cannot get back into its session
// as who it was. It asks for nothing as nobody, loses its lock in time, says why
// to whoever wants a lock, and works again when its credentials do.
func TestCredentialsRefusedOnReconnect(t *testing.T) {
	e := sharedEnsemble(t)
	w := newWiretap(t, e.Hosts())
	hooks, refused := refusals()
	c := dial(t, w.Addr(), owning("session_timeout", "4s"), zklock.WithHooks(hooks))
	other := dial(t, e.Hosts(), owning("session_timeout", "4s"))
	held := acquire(t, c.Mutex("x"))
	next := try(t, within(t), other.Mutex("x"))

	before := w.made()
	w.spoil.Store(true)
	w.KillConns()
	receive(t, "the loss", held.Done())
	if err := held.Err(); !errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrClosed) {
		t.Errorf("the lock ended with %v", err)
	}
	for range 3 {
		began := time.Now()
		_, err := c.Mutex("x").Acquire(within(t))
		if !errors.Is(err, zklock.ErrNoAuth) || !errors.Is(err, driver.ErrAuthFailed) {
			t.Errorf("with credentials that are refused: %v", err)
		}
		if d := time.Since(began); d > atOnce {
			t.Errorf("told after %v", d)
		}
	}
	for i, ops := range w.asked(before) {
		for _, op := range ops {
			if op != codeAuth && op != codeClose {
				t.Errorf("connection %d asked for %v though its credentials were refused", i, ops)
				break
			}
		}
	}
	if n := w.made() - before; n < 4 {
		t.Errorf("%d connections were made: it has not tried again", n)
	}

	w.spoil.Store(false)
	w.KillConns() // none may have got through in between
	l := next.must(t)
	if !isDone(held) {
		t.Error("the next one got in before the loss")
	}
	release(t, l)
	release(t, acquire(t, c.Mutex("x")))
	if n := refused.Load(); n != 0 {
		t.Errorf("%d operations were refused", n)
	}
}

// TestExpiryWithCredentials: the session is gone, and the next one has the same
// identity before it is used.
func TestExpiryWithCredentials(t *testing.T) {
	e := sharedEnsemble(t)
	w := newWiretap(t, e.Hosts())
	hooks, refused := refusals()
	c := dial(t, w.Addr(), owning("session_timeout", "3s"), zklock.WithHooks(hooks))
	other := dial(t, e.Hosts(), owning("session_timeout", "3s"))
	for range 2 {
		held := acquire(t, c.Mutex("x"))
		waiting := try(t, within(t), c.Mutex("x"))
		next := try(t, within(t), other.Mutex("x"))
		w.Cut()
		receive(t, "the loss", held.Done())
		l := next.must(t) // the session has expired
		if held.Valid() {
			t.Error("two hold")
		}
		w.Heal()
		release(t, l)
		release(t, waiting.must(t))
	}
	credentialsFirst(t, w.asked(0))
	if n := refused.Load(); n != 0 {
		t.Errorf("%d operations were refused", n)
	}
	if st := c.Stats(); st.SessionsOpened < 3 {
		t.Errorf("%d sessions were opened, want one for each expiry", st.SessionsOpened)
	}
}
