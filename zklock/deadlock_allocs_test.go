//go:build !race

package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// TestAllocationsOfANestedAcquisition compares acquisitions whose context carries a lock with those of a context
// that ends with the same lock and carries none. All are granted long before deadlock_timeout.
func TestAllocationsOfANestedAcquisition(t *testing.T) {
	waits := make(chan struct{}, 1)
	c, _ := forgetfulConfig(t, zklock.Config{HandoverTime: time.Hour, DeadlockTimeout: time.Hour}, zklock.WithHooks(zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
		waits <- struct{}{}
		return ctx, nil
	}}))
	ctx, cancel := acquireFor(t, c.Mutex("carried")).Context(context.Background())
	defer cancel()
	acquire := func(ctx context.Context, m *zklock.Mutex) *zklock.Lock {
		l, err := m.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		return l
	}
	release := func(l *zklock.Lock) {
		if err := l.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
	free, busy := c.Mutex("free"), c.Mutex("busy")
	next := make(chan *zklock.Lock)
	for what, f := range map[string]func(context.Context){
		"Acquire and Release": func(ctx context.Context) { release(acquire(ctx, free)) },
		"Acquire of a lock that another goroutine has": func(ctx context.Context) {
			l := acquire(context.Background(), busy)
			go func() { next <- acquire(ctx, busy) }()
			<-waits
			release(l)
			release(<-next)
		},
	} {
		got := allocations(func() { f(ctx) })
		want := allocations(func() { f(zklock.Detach(ctx)) }) - allocations(func() { zklock.Detach(ctx) })
		if t.Logf("%s: %v allocations, and %v without a lock", what, got, want); got != want {
			t.Errorf("%s: %v allocations, want %v as without a lock", what, got, want)
		}
	}
}

// allocations returns how many allocations f makes: the least of some averages, since other goroutines and the
// scheduler make some now and then.
func allocations(f func()) float64 {
	least := testing.AllocsPerRun(200, f)
	for range 9 {
		least = min(least, testing.AllocsPerRun(200, f))
	}
	return least
}
