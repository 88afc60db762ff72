package integration_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// A server keeps its last 500 transactions in memory. So a thousand goroutines of one session, each with a name of its own,
// must not fill a small heap by the size of the groups that they share. In long mode they go on for a minute, with shorter
// names, of which more share a group.
func TestThousandCallersOnASmallHeap(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{"-Xmx128m"}})
	const callers, kept = 1000, 500
	var groups, cycles, errs atomic.Int64
	count := func(ctx context.Context, op zklock.OperationEvent) (context.Context, func(error)) {
		if op.Group > 1 {
			groups.Add(1)
		}
		return ctx, nil
	}
	c := dial(t, e.Hosts(), quick("pool_max_sessions", "1", "handover_limit", "0"), zklock.WithHooks(zklock.Hooks{Operation: count}))
	length := long.Count(t, "ZKLOCK_HEAP_NAME", 400, 40)
	until := time.Now().Add(long.Time(t, "ZKLOCK_HEAP", 0, time.Minute))
	var done sync.WaitGroup
	for i := range callers {
		m := c.Mutex(fmt.Sprintf("%0*d", length, i))
		done.Go(func() {
			for t.Context().Err() == nil && errs.Load() < callers && (groups.Load() < kept+kept/5 || time.Now().Before(until)) {
				l, err := m.Acquire(within(t))
				if err == nil {
					err = l.Release(within(t))
				}
				if err != nil {
					errs.Add(1) // a busy machine may lose a session
					continue
				}
				cycles.Add(1)
			}
		})
	}
	done.Wait()
	t.Logf("%d cycles in %d groups, %d errors, %d sessions lost", cycles.Load(), groups.Load(), errs.Load(), c.Stats().SessionsLost)
	if e.Server(0).Logged("OutOfMemoryError") || groups.Load() < kept || errs.Load() >= callers {
		t.Errorf("a server with a heap of 128 MB has failed, after %d cycles in %d groups, with %d errors:\n%s", cycles.Load(), groups.Load(), errs.Load(), e.Server(0).Log())
	}
	release(t, acquire(t, c.Mutex("after")))
}
