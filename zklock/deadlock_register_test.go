package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestReleaseUnderTwoRoots: a context carries locks of two clients with different roots. The lock of the other
// root is not registered, and its release leaves the registration alone.
func TestReleaseUnderTwoRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := config(t, e.Connector(), nil)
		outer := openConfig(t, c, nil)
		c = config(t, e.Connector(), nil)
		c.Root = "/zklock/app"
		inner := openConfig(t, c, nil)
		other := connect(t, e.Connector(), nil)
		x := mustLock(t)(inner.Mutex("x").Acquire(t.Context()))
		k := mustLock(t)(outer.Mutex("k").Acquire(t.Context()))
		y := mustLock(t)(other.Mutex("y").Acquire(t.Context()))
		ctx, cancel := x.Context(context.Background())
		defer cancel()
		ctx, cancel2 := k.Context(ctx)
		defer cancel2()
		ctx = context.WithoutCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := outer.Mutex("y").Acquire(ctx, zklock.WithWait(20*time.Second)); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		mustRelease(t, x)
		synctest.Wait()
		time.Sleep(3 * time.Second)
		if n := registered(e); n != 1 {
			t.Errorf("%d waits are registered, want 1:\n%s", n, e.Dump())
		}
		<-done
		time.Sleep(30 * time.Second)
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered", n)
		}
		mustRelease(t, y)
		mustRelease(t, k)
	})
}

// TestWaitUnderTheLongerOfTwoRoots: the client with the longer root waits, with a context that carries a lock of the
// other one, too. Its registration lists its own lock only, and a circle below its root is found.
func TestWaitUnderTheLongerOfTwoRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := config(t, e.Connector(), nil)
		c.Root = "/zklock/app"
		inner, other := openConfig(t, c, nil), openConfig(t, c, nil)
		k := mustLock(t)(connect(t, e.Connector(), nil).Mutex("k").Acquire(t.Context()))
		x, y := apart(t, inner, other)
		ctx, cancel := x.Context(t.Context())
		defer cancel()
		ctx, cancel2 := k.Context(ctx)
		defer cancel2()
		first := nestedIn(ctx, inner.Mutex("y"))
		time.Sleep(1500 * time.Millisecond)
		s := plain(t, e)
		names, _, err := s.Children(t.Context(), "/zklock/app/%waits")
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if n, err := s.Get(t.Context(), "/zklock/app/%waits/"+names[0]); err != nil || bytes.Contains(n.Data, []byte(`"name":"k"`)) {
			t.Errorf("%s, %v", n.Data, err)
		}
		wantDeadlock(t, <-nested(t, y, other.Mutex("x")), "y>x", "x>y")
		goesOn(t, y, first, x)
		mustRelease(t, k)
	})
}

// TestRegisterThatMayNotBeRead: a client may create and delete registrations, and may not list them. It says so once,
// and finds the circles inside the client. When it gets the right, it finds those with another client.
func TestRegisterThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var allowed atomic.Bool
		refuse := onRegister(faultdriver.If("not allowed", func(op faultdriver.Op) bool { return op.Kind == faultdriver.Children && !allowed.Load() }, faultdriver.Random(1, 1, faultdriver.Fail(driver.ErrNoAuth))))
		var log bytes.Buffer
		a := connect(t, faultdriver.Wrap(e.Connector(), refuse), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		bounded := []zklock.AcquireOption{zklock.WithWait(40 * time.Second)}
		for range 2 {
			wantVictims(t, circle(t, e, nil, party{a, a.Mutex("p"), a.Mutex("q"), bounded}, party{a, a.Mutex("q"), a.Mutex("p"), bounded}), 1)
			time.Sleep(3 * time.Minute)
		}
		synctest.Wait() // for the log, which no caller waits for
		if n := strings.Count(log.String(), "refuse to register waits or to list them"); n != 1 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		allowed.Store(true)
		b := connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		first, second := nested(t, x, a.Mutex("y")), nested(t, y, b.Mutex("x"))
		wantVictims(t, settle(t, e, []*zklock.Lock{x, y}, []<-chan outcome{first, second}), 1)
	})
}
