//go:build !race

package contention_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// keeping returns a client that keeps a name, so that a cycle makes no request.
func keeping(tb testing.TB, hooks zklock.Hooks) zklock.Acquirer {
	tb.Helper()
	e := memdriver.New()
	c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), Keep: time.Hour}, zklock.WithHooks(hooks), zklock.WithLogger(nil))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = c.Close()
		_ = e.Close()
	})
	m := c.Mutex("orders/42")
	for c.Stats().Kept == 0 {
		cycle(tb, m)
	}
	return m
}

func cycle(tb testing.TB, a zklock.Acquirer) {
	lock, err := a.Acquire(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	if err := lock.Release(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// An acquisition that does not wait makes as many allocations with the profile as without.
func TestAllocations(t *testing.T) {
	without, with := keeping(t, zklock.Hooks{}), keeping(t, contention.New().Hooks())
	for _, a := range []zklock.Acquirer{without, with} {
		cycle(t, a)
	}
	before, after := testing.AllocsPerRun(1000, func() { cycle(t, without) }), testing.AllocsPerRun(1000, func() { cycle(t, with) })
	t.Logf("%v allocations without the profile, %v with it", before, after)
	if before == 0 || after > before {
		t.Errorf("%v allocations without the profile, %v with it", before, after)
	}
}

func BenchmarkAcquireWithoutWait(b *testing.B) {
	for name, hooks := range map[string]zklock.Hooks{
		"without": {}, "with": contention.New().Hooks(), "callers": contention.New(contention.WithCallerLabels()).Hooks(),
	} {
		b.Run(name, func(b *testing.B) {
			a := keeping(b, hooks)
			b.ReportAllocs()
			for b.Loop() {
				cycle(b, a)
			}
		})
	}
}

// BenchmarkWait is what the hooks of an acquisition that waits take, without the wait.
func BenchmarkWait(b *testing.B) {
	h := contention.New(contention.WithHolderLabels()).Hooks()
	e := zklock.WaitEvent{Name: "orders/42", Position: 1, Ahead: zklock.Contender{Host: "web-7d9f8b6c4-x2k9p", Node: "n", Label: "POST /orders/{id}/pay", Held: true}}
	b.ReportAllocs()
	for b.Loop() {
		_, end := h.Wait(context.Background(), e)
		end(zklock.WaitResult{})
	}
}
