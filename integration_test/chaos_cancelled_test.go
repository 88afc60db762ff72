package integration_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// TestThousandsOfCancelledWaitsLeaveNothing: clients wait for a name that another client
// holds, and cancel each wait as soon as it has begun. After thousands of waits there are
// no more queue nodes, goroutines, memory, and watches on the server than after the first
// hundreds.
func TestThousandsOfCancelledWaitsLeaveNothing(t *testing.T) {
	const (
		clients = 8
		first   = 800

		// slackHeap allows for differences of the garbage collector and of the
		// connections' buffers at different times. A separate watch for each wait
		// would take twice as much.
		slackHeap = 300_000
	)
	waits := long.Count(t, "ZKLOCK_WAITS", 3*first, 10_000)
	zk := sharedEnsemble(t)
	raw := dialRaw(t, zk.Hosts(), patience)
	holder := dial(t, zk.Hosts(), quick())
	m := holder.Mutex("held")
	held := acquire(t, m)

	var all []*zklock.Client
	for range clients {
		// The hook cancels a wait as soon as it has begun: it finds the cancel
		// function in the wait's context.
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
		runtime.GC() // the finalizers of the first call have run
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
	// The holder may have begun to watch its own node since. A session keeps a few idle
	// goroutines for concurrent requests.
	eventually(t, "goroutines and watches are not more than before", func() bool {
		after = measure()
		return after.goroutines <= before.goroutines+2*clients && after.watches <= before.watches+1
	})
	t.Logf("after %d waits: %+v; after %d waits: %+v", first, before, waits, after)
	if long.On() && after.heap > before.heap+slackHeap { // fewer waits could hide in the slack
		t.Errorf("the heap grew from %d to %d bytes", before.heap, after.heap)
	}
	if !held.Valid() {
		t.Error("the holder has lost the lock")
	}
	release(t, held)
}

// cancelKey is the key of a context's cancel function.
type cancelKey struct{}
