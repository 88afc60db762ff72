//go:build !race

package integration_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// maxSeparateWaiter is the number of bytes on the heap for a waiter with a place of its own,
// with what go-zookeeper keeps for its watches. A place in several queues has as many nodes
// and watches.
const maxSeparateWaiter = 4096

// TestSeparateWaitersOnAServerMemory measures waiters of one process that wait for one name,
// each with a place of its own. ZKLOCK_WAITERS sets their numbers: 1000,4000,10000.
func TestSeparateWaitersOnAServerMemory(t *testing.T) {
	long.Test(t, "it measures memory")
	numbers := "250,1000"
	if s := os.Getenv("ZKLOCK_WAITERS"); s != "" {
		numbers = s
	}
	watches := func() int64 {
		stats, err := sharedEnsemble(t).Server(0).Stats()
		if err != nil {
			t.Fatal(err)
		}
		return int64(stats["watch_count"])
	}
	for _, kind := range []string{"mutex", "semaphore", "election", "All of two"} {
		t.Run(kind, func(t *testing.T) {
			for number := range strings.SplitSeq(numbers, ",") {
				n, err := strconv.ParseInt(number, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				name, c := strings.ReplaceAll(kind, " ", "-")+number, dial(t, sharedEnsemble(t).Hosts(), keys("session_timeout", "30s"))
				m := c.Mutex(name)
				var a zklock.Acquirer = m
				opts, nodes := []zklock.AcquireOption{zklock.WithCandidacy()}, int64(1) // others have no place of their own
				switch kind {
				case "semaphore":
					a = c.Semaphore(name, 1)
				case "All of two":
					a, nodes = zklock.All(m, c.Mutex(name+"-2")), 2
				}
				el := election.New(c, name)
				l := acquire(t, a)
				before, watched := heap(), watches()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						var err error
						if kind == "election" {
							_, err = el.Campaign(ctx)
						} else {
							_, err = a.Acquire(ctx, opts...)
						}
						if ctx.Err() == nil {
							t.Errorf("a waiter for a held name ended: %v", err)
						}
					})
				}
				for tick := time.Tick(50 * time.Millisecond); watches()-watched < n*nodes; { // the test's time limit bounds it
					<-tick
				}
				each := (heap() - before) / n
				t.Logf("%5d waiters: %d bytes each; sessions lost: %d", n, each, c.Stats().SessionsLost)
				if limit := nodes * maxSeparateWaiter; each > limit {
					t.Errorf("a waiter of %d has %d bytes, want at most %d", n, each, limit)
				}
				cancel()
				wg.Wait()
				release(t, l)
				_ = c.Close()
			}
		})
	}
}

// heap returns the number of bytes on the heap after garbage collection.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
