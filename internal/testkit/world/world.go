// Package world has the ensemble and the client of an adapter's tests. It checks that every
// lock is released exactly once, and never while its handler runs.
package world

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// World is an ensemble in memory with a client.
type World struct {
	T        *testing.T
	Ensemble *memdriver.Ensemble
	Client   *zklock.Client
	Waiting  chan struct{} // gets one value for every wait

	mu       sync.Mutex
	released map[*zklock.Lock]int // guarded by mu; 0: held
	running  map[*zklock.Lock]int // guarded by mu; running handlers
}

// New returns a World whose client uses a connector of e. At the end of the test it waits until
// all locks are released, closes both, and makes the checks.
func New(t *testing.T, e *memdriver.Ensemble, connector driver.Connector) *World {
	t.Helper()
	w := &World{T: t, Ensemble: e, released: make(map[*zklock.Lock]int), running: make(map[*zklock.Lock]int), Waiting: make(chan struct{}, 1000)}
	cfg := zklock.Config{Connector: connector, SessionTimeout: corekit.SessionTimeout}
	client, err := zklock.OpenConfig(cfg, zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) {
				if r.Lock != nil {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.released[r.Lock] += 0
				}
			}
		},
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			w.Waiting <- struct{}{}
			return ctx, nil
		},
		Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			if ctx.Err() != nil {
				t.Errorf("released on a context that has ended: %v", ctx.Err())
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.released[e.Lock]++
			if n := w.running[e.Lock]; n != 0 {
				t.Errorf("a lock was released while %d of its handlers were running", n)
			}
			return ctx, nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	w.Client = client
	t.Cleanup(w.close)
	return w
}

func (w *World) close() {
	w.WantFree()
	if err := w.Client.Close(); err != nil {
		w.T.Error(err)
	}
	_ = w.Ensemble.Close()
	w.WantReleasedOnce()
}

// IgnoreWaits receives from Waiting until stop is called.
func (w *World) IgnoreWaits() (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-w.Waiting:
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped); <-ended }
}

// WantReleasedOnce checks that each lock was released once.
func (w *World) WantReleasedOnce() {
	w.T.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for l, n := range w.released {
		if n != 1 {
			w.T.Errorf("lock %q was released %d times, want once", l.Name(), n)
		}
	}
}

// Locks returns the locks that were acquired so far.
func (w *World) Locks() []*zklock.Lock {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.released))
}

// Watch notes that a handler runs under the locks that ctx carries, until left is called.
func (w *World) Watch(ctx context.Context) (left func()) {
	w.T.Helper()
	locks := zklock.HeldIn(ctx)
	if len(locks) == 0 {
		w.T.Error("the handler's context carries no lock")
	}
	count := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, l := range locks {
			w.running[l] += n
		}
	}
	count(1)
	return func() { count(-1) }
}

// Hold acquires a mutex with another client.
func (w *World) Hold(name string) (release func()) {
	w.T.Helper()
	other, err := zklock.OpenConnector(w.Ensemble.Connector())
	if err != nil {
		w.T.Fatal(err)
	}
	l, err := other.Mutex(name).Acquire(context.Background())
	if err != nil {
		w.T.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := l.Release(context.Background()); err != nil {
			w.T.Error(err)
		}
		if err := other.Close(); err != nil {
			w.T.Error(err)
		}
	})
}

// WantFree waits until no lock is held. A handler notices a loss a moment before Stats does.
func (w *World) WantFree() {
	w.T.Helper()
	wait.Until(w.T, "Stats counts no held lock", func() bool { return w.Client.Stats().Held == 0 })
}

// Lose ends all sessions, and waits until the lock that ctx carries is lost.
func (w *World) Lose(ctx context.Context) {
	w.Ensemble.ExpireAll()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, zklock.ErrLost) {
		w.T.Errorf("the context's cause is %v, want ErrLost", cause)
	}
}
