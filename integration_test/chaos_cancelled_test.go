package integration_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// TestTenThousandCancelledWaitsLeaveNothing has clients wait for a name that
// somebody else holds, each time for no longer than until they wait. What is
// left after the first thousand is what there is after ten thousand: queue
// nodes, goroutines, memory, and watches on the server.
func TestTenThousandCancelledWaitsLeaveNothing(t *testing.T) {
	const (
		waits   = 10_000
		clients = 8
		first   = 1000

		// slackHeap is for what the garbage collector and the buffers of
		// connections have more or less at one time or another. A watch of its
		// own for each wait would take twice as much.
		slackHeap = 300_000
	)
	zk := sharedEnsemble(t)
	raw := dialRaw(t, zk.Hosts(), patience)
	holder := dial(t, zk.Hosts(), quick())
	m := holder.Mutex("held")
	held := acquire(t, m)

	var all []*zklock.Client
	for range clients {
		// A wait is cancelled as soon as it has begun: the hook has the cancel
		// function of its context.
		all = append(all, dial(t, zk.Hosts(), quick("pool_max_sessions", "1"), zklock.WithHooks(zklock.Hooks{
			Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
				ctx.Value(cancelKey{}).(context.CancelFunc)()
				return ctx, nil
			},
		})))
	}
	forever, done := context.WithTimeout(context.Background(), 3*patience)
	defer done()
	waiting := func(n int) {
		var wg sync.WaitGroup
		for _, c := range all {
			wg.Go(func() {
				for range n / clients {
					ctx, cancel := context.WithCancel(forever)
					_, err := c.Mutex("held").Acquire(context.WithValue(ctx, cancelKey{}, cancel))
					if !errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
						t.Errorf("Acquire: %v, want ErrNotAcquired and context.Canceled", err)
						cancel()
						return
					}
				}
			})
		}
		wg.Wait()
		eventually(t, "only the holder is in the queue", func() bool { return len(contenders(t, raw, m)) == 1 })
	}
	type left struct {
		goroutines int
		heap       uint64
		watches    float64
	}
	measure := func() (l left) {
		runtime.GC()
		runtime.GC() // finalizers of the first round have run
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		stats, err := zk.Server(0).Stats()
		if err != nil {
			t.Fatal(err)
		}
		return left{runtime.NumGoroutine(), mem.HeapAlloc, stats["watch_count"]}
	}

	waiting(first)
	before := measure()
	waiting(waits - first)
	var after left
	// The holder watches its own node from some moment on; and a session keeps
	// a few idle goroutines for requests that are under way together.
	eventually(t, "goroutines and watches are as many as before", func() bool {
		after = measure()
		return after.goroutines <= before.goroutines+2*clients && after.watches <= before.watches+1
	})
	t.Logf("%d waits left %+v, %d waits %+v", first, before, waits, after)
	if after.heap > before.heap+slackHeap {
		t.Errorf("the heap grew from %d to %d bytes", before.heap, after.heap)
	}
	if !held.Valid() {
		t.Error("the holder has lost the lock")
	}
	release(t, held)
}

// cancelKey is the key of a context's own cancel function.
type cancelKey struct{}
