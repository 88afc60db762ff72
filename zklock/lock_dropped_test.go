package zklock_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The clean-ups of the garbage collector run outside of any synctest bubble. So this test
// runs in real time, with a session timeout that a busy machine keeps.
func TestDroppedLockIsCountedAndStaysHeld(t *testing.T) {
	ensemble := memdriver.New(memdriver.WithTickTime(500 * time.Millisecond))
	defer ensemble.Close()
	cfg := zklock.Config{Connector: ensemble.Connector(), SessionTimeout: 10 * time.Second, TickTime: 500 * time.Millisecond}
	var log locked
	c, err := zklock.OpenConfig(cfg, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	acquire := func(name string) *zklock.Lock {
		l, err := c.Mutex(name).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	kept := acquire("kept")
	func() {
		done := acquire("dropped").Done()
		go func() { <-done }() // waiting for the loss does not keep the Lock alive, and Done still closes
		if err := acquire("released").Release(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for limit := time.Now().Add(time.Minute); (c.Stats().Forgotten == 0 || log.String() == "") && time.Now().Before(limit); {
		runtime.GC()
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	if n := c.Stats().Forgotten; n != 1 {
		t.Errorf("Stats counts %d handles as forgotten, want 1", n)
	}
	if !strings.Contains(log.String(), "dropped without Release") {
		t.Errorf("the log does not report the dropped lock: %q", log.String())
	}
	other, err := zklock.OpenConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Mutex("dropped").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("another client's try for a dropped lock: %v, want ErrNotAcquired", err)
	}
	if err := kept.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The garbage collector frees a Lock that was released, with all that it refers to. It does so even
// if other Locks have joined it by re-entry and refer to it, and while another Lock of the same
// hold is not released.
func TestReleasedLocksAreCollected(t *testing.T) {
	for name, age := range map[string]time.Duration{
		"released at once": 0,
		"released when old enough for the client to detect that it is dropped": 5 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { releasedLocksAreCollected(t, age) })
		})
	}
}

func releasedLocksAreCollected(t *testing.T, age time.Duration) {
	c := connect(t, memdriver.New().Connector(), nil)
	var dropped []weak.Pointer[zklock.Lock]
	collected := func(what string) {
		t.Helper()
		// The collector may collect a Lock only after the one that joined it.
		for range len(dropped) {
			runtime.GC()
			time.Sleep(time.Second)
		}
		for i, p := range dropped {
			if p.Value() != nil {
				t.Errorf("%s: released lock %d of %d was not collected", what, i+1, len(dropped))
			}
		}
	}
	first := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
	func() {
		l, ctx := first, t.Context()
		var joined []*zklock.Lock
		for range 2 {
			time.Sleep(age)
			inner, cancel := l.Context(ctx)
			defer cancel()
			ctx = inner
			l = mustLock(t)(c.Mutex("x").Acquire(ctx, zklock.Reenter()))
			joined = append(joined, l)
		}
		time.Sleep(age)
		for _, l := range slices.Backward(joined) {
			mustRelease(t, l)
			dropped = append(dropped, weak.Make(l))
		}
	}()
	collected("the lock that they joined is held")
	mustRelease(t, first)
	dropped = append(dropped, weak.Make(first))
	first = nil
	collected("no lock is held")
}

// leak acquires a lock and drops it.
func leak(t *testing.T, a zklock.Acquirer) {
	if _, err := a.Acquire(t.Context()); err != nil {
		t.Error(err)
	}
}

// leakHanded calls leak for a lock that another goroutine of the process hands over. The stack
// in the log must be the waiter's.
func leakHanded(t *testing.T, c *zklock.Client, waiting <-chan struct{}) {
	l, err := c.Mutex("handed").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { leak(t, c.Mutex("handed")) })
	<-waiting
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if n := c.Stats().Handovers; n != 1 {
		t.Errorf("%d hand-overs, want 1", n)
	}
}

// With WithAcquireStacks the log shows where a dropped lock was acquired, from the caller
// of this package on. Without the option it shows no stack.
func TestDroppedLockIsLoggedWithItsStack(t *testing.T) {
	for _, with := range []bool{true, false} {
		ensemble := memdriver.New(memdriver.WithTickTime(500 * time.Millisecond))
		defer ensemble.Close()
		var log locked
		waiting := make(chan struct{}, 1)
		opts := []zklock.Option{
			zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			zklock.WithHooks(zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
				waiting <- struct{}{}
				return ctx, nil
			}}),
		}
		if with {
			opts = append(opts, zklock.WithAcquireStacks())
		}
		c, err := zklock.OpenConfig(zklock.Config{
			Connector: ensemble.Connector(), SessionTimeout: 10 * time.Second, TickTime: 500 * time.Millisecond, HandoverTime: time.Minute,
		}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		leak(t, c.Semaphore("s", 2))
		leakHanded(t, c, waiting)
		for limit := time.Now().Add(time.Minute); c.Stats().Forgotten < 2 && time.Now().Before(limit); {
			runtime.GC()
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil { // after that nothing writes to the log
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "dropped without Release") })
		if len(lines) != 2 {
			t.Fatalf("WithAcquireStacks %v: the log says %q, want two dropped locks", with, log.String())
		}
		for _, line := range lines {
			_, stack, logged := strings.Cut(line, "acquired=")
			if logged != with || with && (!strings.Contains(stack, "zklock_test.leak (") || !strings.Contains(stack, "lock_dropped_test.go:")) {
				t.Errorf("WithAcquireStacks %v: the log says %s", with, line)
			}
			if strings.Contains(stack, "go-zklock/zklock.") || strings.Contains(stack, "leakHanded (") {
				t.Errorf("the stack has frames of this package, or of the goroutine that released: %s", line)
			}
		}
		t.Log(lines[0])
	}
}
