package zklock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestCloseLosesLocksBeforeTheirNodesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		var mu sync.Mutex
		var there []bool
		hooks := zklock.Hooks{Lost: func(context.Context, zklock.LostEvent) {
			mu.Lock()
			there = append(there, strings.Contains(e.Dump(), "__WRIT__"))
			mu.Unlock()
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		l := mustLock(t)(c.Mutex("a").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		other := connect(t, e.Connector(), nil)
		got := make(chan *zklock.Lock, 1)
		go func() {
			next := mustLock(t)(other.Mutex("a").Acquire(t.Context()))
			if l.Valid() || l.Err() == nil || ctx.Err() == nil {
				t.Error("granted to another client while the closed one's lock is valid")
			}
			got <- next
		}()
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Err(); !lostByClose(err) {
			t.Errorf("Err after Close: %v", err)
		}
		if err := context.Cause(ctx); !lostByClose(err) {
			t.Errorf("cause after Close: %v", err)
		}
		if len(there) != 1 || !there[0] {
			t.Errorf("the Lost hook found the queue node: %v, want one call that found it", there)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release after Close: %v", err)
		}
		mustRelease(t, <-got)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Mutex("a").Acquire(t.Context()); !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("Acquire after Close: %v", err)
		}
		if _, err := c.Contenders(t.Context(), "a"); !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("Contenders after Close: %v", err)
		}
		if err := c.Ping(t.Context()); !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("Ping after Close: %v", err)
		}
	})
}

func TestShutdownWaitsForHoldersAndRefusesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		other := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("a").Acquire(t.Context()))
		remote := mustLock(t)(other.Mutex("b").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		for _, a := range []zklock.Acquirer{c.Mutex("a"), c.Mutex("a"), c.RWMutex("a").Reader(), c.Mutex("b"), c.RWMutex("b").Reader(), c.Mutex("b"), zklock.All(c.Mutex("b"), c.Mutex("c"))} {
			wg.Go(func() {
				began := time.Now()
				if _, err := a.Acquire(t.Context()); !errors.Is(err, zklock.ErrClosed) {
					t.Errorf("waiter for %s: %v", a.Name(), err)
				}
				if d := time.Since(began); d != time.Second {
					t.Errorf("waiter for %s was refused after %v, want 1s", a.Name(), d)
				}
			})
		}
		time.Sleep(time.Second)
		done := make(chan error, 1)
		go func() { done <- c.Shutdown(t.Context()) }()
		wg.Wait()
		synctest.Wait()
		if dump := e.Dump(); strings.Count(dump, "__WRIT__")+strings.Count(dump, "__READ__") != 2 {
			t.Errorf("waiters left queue nodes:\n%s", dump)
		}
		joined := mustLock(t)(c.Mutex("a").Acquire(ctx, zklock.Reenter()))
		mustRelease(t, l)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Shutdown returned %v while a lock was held", err)
		default:
		}
		if !joined.Valid() {
			t.Error("the joined lock is not valid")
		}
		mustRelease(t, joined)
		if err := <-done; err != nil {
			t.Error(err)
		}
		mustRelease(t, remote)
	})
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		l := mustLock(t)(c.Mutex("a").Acquire(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		if err := l.Err(); !lostByClose(err) {
			t.Errorf("Err of the lock after Shutdown: %v", err)
		}
	})
}

// lostByClose reports whether err is the loss of a lock whose client was closed. It matches ErrLost,
// and not ErrClosed.
func lostByClose(err error) bool {
	var lost *zklock.LostError
	return errors.As(err, &lost) && lost.Cause == zklock.ErrClosed && errors.Is(err, zklock.ErrLost) && !errors.Is(err, zklock.ErrClosed)
}
