package zklock_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestTriesOfIdleKeptNamesFarAway: a try waits for a recall for as long as that takes on the
// present network, whichever servers it and the keeper are connected to. A try of a name that
// is in use still fails, after two seconds at the latest.
func TestTriesOfIdleKeptNamesFarAway(t *testing.T) {
	const tries, servers = 80, 5
	for _, latency := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, together: %v", latency, together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithServers(servers), memdriver.WithLatency(latency))
					var keepers, others []*zklock.Client // one at each server
					for range servers {
						keepers = append(keepers, keeping(t, e, "keep", "1h"))
					}
					for range servers {
						others = append(others, connect(t, e.Connector(), nil))
					}
					for i, name := range names(tries) {
						for nodes(e) == i {
							use(t, keepers[i%servers].Mutex(name))
						}
					}
					var failed atomic.Int32
					var all sync.WaitGroup
					for i, name := range names(tries) {
						try := func() {
							l, err := others[i/servers%servers].Mutex(name).TryAcquire(t.Context())
							if err != nil {
								failed.Add(1)
								return
							}
							mustRelease(t, l)
						}
						if all.Go(try); !together {
							all.Wait()
						}
					}
					all.Wait()
					if n := failed.Load(); n > 0 {
						t.Errorf("%d of %d tries of names that nothing uses have failed", n, tries)
					}

					synctest.Wait()
					time.Sleep(time.Second)
					for nodes(e) == 0 {
						use(t, keepers[0].Mutex("x"))
					}
					held := mustLock(t)(keepers[0].Mutex("x").Acquire(t.Context()))
					queued := make(chan time.Time, 1)
					go func() {
						for nodes(e) == 1 {
							time.Sleep(time.Millisecond)
						}
						queued <- time.Now()
					}()
					_, err := others[0].Mutex("x").TryAcquire(t.Context())
					least, most := 200*time.Millisecond, 2*time.Second+3*latency // until its client knows that it is queued
					if took := time.Since(<-queued); !errors.Is(err, zklock.ErrNotAcquired) || took < least || took > most {
						t.Errorf("a try of a lock in use: %v after it was queued: %v; want a failure after %v to %v", took, err, least, most)
					}
					mustRelease(t, held)
				})
			})
		}
	}
}
