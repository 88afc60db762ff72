package simulation

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/ring"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// stood closes a ring of clients of an ensemble in memory, and returns how long it has stood.
func stood(t *testing.T, r ring.Ring, seed uint64) time.Duration {
	t.Helper()
	var mu sync.Mutex // for delays
	delays := rand.New(rand.NewPCG(seed, 0x9177))
	e := memdriver.New(memdriver.WithLatency(r.RTT / 2))
	defer e.Close()
	return r.Play(t, seed, "", func(hooks zklock.Hooks) *zklock.Client {
		connector := e.Connector()
		if r.Jitter {
			connector = faultcontrol.Control(connector, func(faultdriver.Op) faultdriver.Fault {
				mu.Lock()
				defer mu.Unlock()
				return faultdriver.Delay(time.Duration(delays.Int64N(int64(r.RTT/4) + 1)))
			})
		}
		c, err := zklock.OpenConfig(zklock.Config{Connector: connector, DeadlockTimeout: r.Timeout}, zklock.WithHooks(hooks))
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

// TestDeadlocksAtADistance: a circle ends within twice deadlock_timeout and eight round trips, whatever the distance,
// the kinds of its members, and the readers that come and go meanwhile. One of its members fails.
// ZKLOCK_RUNS sets how many rings there are of each kind.
func TestDeadlocksAtADistance(t *testing.T) {
	runs := long.Count(t, "ZKLOCK_RUNS", 3, 150)
	sizes, timeouts := []int{2, 5, 12}, []time.Duration{time.Second}
	trips := []time.Duration{0, 80 * time.Millisecond, 200 * time.Millisecond}
	if long.On() {
		sizes = []int{2, 3, 5, 8, 12, 16}
		timeouts = append(timeouts, 100*time.Millisecond)
		trips = []time.Duration{0, 16 * time.Millisecond, 30 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}
	}
	if corekit.Race {
		sizes = sizes[:2]
	}
	for _, kind := range ring.Kinds {
		for _, timeout := range timeouts {
			for _, rtt := range trips {
				for _, jitter := range []bool{false, true} {
					for _, members := range sizes {
						r := ring.Ring{Kind: kind, Members: members, Timeout: timeout, RTT: rtt, Jitter: jitter}
						if jitter && rtt == 0 {
							continue
						}
						var slowest time.Duration
						for seed := range runs {
							synctest.Test(t, func(t *testing.T) { slowest = max(slowest, stood(t, r, uint64(seed)+1)) })
						}
						t.Logf("%s of %d, deadlock_timeout %v, round trip %v, jitter %v: the slowest of %d stood for %v", r.Kind, r.Members, r.Timeout, r.RTT, r.Jitter, runs, slowest)
						if slowest > r.Bound() {
							t.Errorf("%+v: a ring stood for %v, want %v at most", r, slowest, r.Bound())
						}
					}
				}
			}
		}
	}
}
