package zklock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestCancelledWaitsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		acquirers := []zklock.Acquirer{b.Mutex("x"), b.RWMutex("x").Reader(), a.Mutex("x"), zklock.All(b.Mutex("x"), b.Mutex("y"))}
		round := func(n int) {
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7+1)*time.Millisecond)
					defer cancel()
					if _, err := acquirers[i%len(acquirers)].Acquire(ctx); !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
						t.Errorf("a cancelled wait: %v", err)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		measure := func() (goroutines, watches int, heap uint64) {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), memcontrol.Of(e).WatchCount(), m.HeapAlloc
		}
		round(100)
		g, w, h := measure()
		for range 100 {
			round(100)
		}
		g2, w2, h2 := measure()
		if g2 > g+5 || w2 > w+2 || h2 > h+8<<20 {
			t.Errorf("%d goroutines, %d watches, %d bytes became %d, %d, %d", g, w, h, g2, w2, h2)
		}
		if n := nodes(e); n != 1 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
		mustRelease(t, l)
		t.Logf("%d goroutines, %d watches, %d bytes became %d, %d, %d", g, w, h, g2, w2, h2)
	})
}

// TestWatchThatSurvivedAReconnectWakesAtOnce: after a reconnect a waiter reads the nodes
// that it watches again, within a sixth of the session timeout. If a watch fires before
// that, it wakes the waiter at once.
func TestWatchThatSurvivedAReconnectWakesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		got := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		for _, id := range e.Sessions() {
			e.KillConnection(id)
		}
		time.Sleep(100 * time.Millisecond) // all have connected again
		mustRelease(t, held)
		released := time.Now()
		next := <-got
		if d := time.Since(released); d > 200*time.Millisecond {
			t.Errorf("the waiter got in %v after the release", d)
		}
		mustRelease(t, next)
	})
}

// Waiters of one session that wait for the same node share one watch, armed by one read.
func TestWaitersOfASessionShareAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		const waiters = 20
		got := make(chan *zklock.Lock)
		asked := cost(e, func() {
			for range waiters {
				go func() { got <- mustLock(t)(b.RWMutex("x").Reader().Acquire(t.Context(), zklock.WithoutHandover())) }()
			}
			time.Sleep(100 * time.Millisecond) // later they watch their own nodes too
		})
		if asked.Watches != 1 || nodes(e) != 1+waiters {
			t.Errorf("%d watches were asked for by %d nodes, want one", asked.Watches, nodes(e)-1)
		}
		mustRelease(t, held)
		for range waiters {
			mustRelease(t, <-got)
		}
	})
}
