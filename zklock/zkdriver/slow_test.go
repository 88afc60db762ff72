package zkdriver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A probe.
func TestProbeSlow(t *testing.T) {
	type slow struct {
		flush    [3]time.Duration
		distance time.Duration
		pause    time.Duration
		off      bool
	}
	for what, c := range map[string]slow{
		"fsync 1s all":       {flush: [3]time.Duration{time.Second, time.Second, time.Second}},
		"fsync 3s all":       {flush: [3]time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}},
		"fsync 3s all, full": {flush: [3]time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}, off: true},
		"fsync 1s one":       {flush: [3]time.Duration{0, time.Second, 0}},
		"fsync 1s two":       {flush: [3]time.Duration{time.Second, time.Second, 0}},
		"far 300":            {distance: 300 * time.Millisecond},
		"far 300 fsync 1":    {distance: 300 * time.Millisecond, flush: [3]time.Duration{time.Second, time.Second, time.Second}},
		"pauses 1s":          {pause: time.Second},
	} {
		for _, s := range []struct{ timeout, tick time.Duration }{{4 * time.Second, time.Second}, {10 * time.Second, 2 * time.Second}, {30 * time.Second, 2 * time.Second}} {
			synctest.Test(t, func(t *testing.T) {
				w := newTriad(t, s.tick)
				for i := range 3 {
					if c.distance > 0 {
						w.n.Distance(i, c.distance, c.distance, c.distance/10)
					}
				}
				var mu sync.Mutex
				moves, lost, at := 0, 0, ""
				client, _ := w.open(t, s.timeout, s.tick, zklock.Hooks{Session: func(e zklock.SessionEvent) {
					mu.Lock()
					defer mu.Unlock()
					switch e.State {
					case driver.Suspended:
						moves++
					case driver.Expired:
						lost++
					case driver.Connected:
						at = e.Server
					}
				}})
				l, err := client.Mutex("held").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i := range 3 {
					memcontrol.Of(w.e).Flush(i, c.flush[i])
				}
				if c.off {
					w.n.Off(seat(t, at), true)
				}
				over := make(chan struct{})
				var calls sync.WaitGroup
				n, failed := 0, 0
				calls.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-over:
							return
						case <-time.After(100 * time.Millisecond):
						}
						if x, err := client.Mutex(fmt.Sprint("call-", i%10)).Acquire(t.Context()); err == nil {
							n++
							_ = x.Release(context.Background())
						} else {
							failed++
						}
					}
				})
				_, asked0 := w.n.Arrivals(0)
				for i := range 20 {
					<-time.After(3 * time.Second)
					if c.pause > 0 {
						cut := memdriver.AroundClients(i % 3)
						w.n.Stopped(i%3, true)
						w.e.Partition(cut)
						<-time.After(c.pause)
						w.e.Heal(cut)
						w.n.Stopped(i%3, false)
					}
				}
				close(over)
				calls.Wait()
				asked := -asked0
				for i := range 3 {
					_, a := w.n.Arrivals(i)
					asked += a
				}
				mu.Lock()
				t.Logf("%-20s T=%v: %d moves, %d sessions lost, held %t, %d calls, %d failed, asked %d", what, s.timeout, moves, lost, l.Valid(), n, failed, asked)
				mu.Unlock()
			})
		}
	}
}
