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
					began := time.Now()
					_, err := others[0].Mutex("x").TryAcquire(t.Context())
					// Apart from the wait, the try lists the queue, creates its node in vain, reads the znode, and
					// creates its node: 16 messages, at a follower.
					least, most := 200*time.Millisecond, 2*time.Second+16*latency
					if took := time.Since(began); !errors.Is(err, zklock.ErrNotAcquired) || took < least || took > most {
						t.Errorf("a try of a lock in use: after %v: %v; want a failure after %v to %v", took, err, least, most)
					} else {
						t.Logf("a try of a lock in use took %v", took)
					}
					mustRelease(t, held)
				})
			})
		}
	}
}
