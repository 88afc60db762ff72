package zkdriver_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// A thousand clients are at one server, which falls silent. Each holds a lock and waits for another one. They do not
// arrive at the others in one instant, no session is lost, and none of them lists a queue again: their watches go with
// them. A tenth of them is enough to see that, and takes less time.
func TestCrowdLeavesASilentServer(t *testing.T) {
	crowd := long.Count(t, "ZKLOCK_CROWD", 100, 1000)
	synctest.Test(t, func(t *testing.T) {
		w := newTriad(t, 2*time.Second)
		server := (w.e.Leader() + 1) % 3
		others := func(off bool) {
			for i := range 3 {
				w.n.Off(i, off && i != server)
			}
		}
		others(true)
		var moved, lost atomic.Int32
		var all sync.WaitGroup
		var mu sync.Mutex
		var held []*zklock.Lock
		clients := make([]*zklock.Client, crowd)
		for i := range crowd {
			all.Go(func() {
				c, err := zklock.OpenConfig(zklock.Config{Connector: w.n.Connector(""), PoolMaxSessions: 1}, zklock.WithLogger(slog.New(slog.DiscardHandler)),
					zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) {
						switch e.State {
						case driver.Suspended:
							moved.Add(1)
						case driver.Expired:
							lost.Add(1)
						}
					}}))
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { _ = c.Close() })
				l, err := c.Mutex(fmt.Sprint("held-", i)).Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				held = append(held, l)
				clients[i] = c
				mu.Unlock()
			})
		}
		all.Wait()
		for i := 0; i < crowd && !t.Failed(); i += 2 {
			go func() { _, _ = clients[i].Mutex(fmt.Sprint("held-", (i+1)%crowd)).Acquire(t.Context()) }()
		}
		<-time.After(20 * time.Second)
		others(false)
		before := memcontrol.Of(w.e).Ops()
		w.stop(server)
		stopped := time.Now()
		<-time.After(20 * time.Second)
		after := memcontrol.Of(w.e).Ops()

		var arrivals []time.Duration
		asked := 0
		for i := range 3 {
			if i == server {
				continue
			}
			at, questions := w.n.Arrivals(i)
			asked += questions
			for _, at := range at {
				if d := at.Sub(stopped); d > 0 {
					arrivals = append(arrivals, d)
				}
			}
		}
		slices.Sort(arrivals)
		busiest := func(window time.Duration) (most int) {
			for i, from := range arrivals {
				n, _ := slices.BinarySearch(arrivals[i:], from+window)
				most = max(most, n)
			}
			return most
		}
		lists := after.Children + after.WatchChildren - before.Children - before.WatchChildren
		valid := 0
		for _, l := range held {
			if l.Valid() {
				valid++
			}
		}
		t.Logf("%d clients: %d moves, %d sessions lost, %d locks held; %d connections to the two others from %v to %v, %d of them questions; at most %d in 100ms, %d in 1s; %d lists, %d other reads",
			crowd, moved.Load(), lost.Load(), valid, len(arrivals), arrivals[0], arrivals[len(arrivals)-1], asked, busiest(100*time.Millisecond), busiest(time.Second),
			lists, after.Gets+after.Watches+after.WatchExists-before.Gets-before.Watches-before.WatchExists)
		if n := int(moved.Load()); n != crowd || lost.Load() > 0 || valid != crowd {
			t.Errorf("%d moves of %d clients, %d sessions lost, %d locks held", n, crowd, lost.Load(), valid)
		}
		if n := busiest(100 * time.Millisecond); n > crowd/2 {
			t.Errorf("%d of %d connections arrive within 100ms", n, len(arrivals))
		}
		if n := len(arrivals); n > crowd*5/2 { // a question, and the connection
			t.Errorf("%d connections of %d clients, want 2 each", n, crowd)
		}
		if lists > 0 {
			t.Errorf("%d lists, want none", lists)
		}
	})
}
